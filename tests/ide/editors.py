"""The language server with real editors, without a screen: Neovim and Emacs, each with the files of editors/. Usage: editors.py EIN

Each opens a program with one mistake, waits for the diagnostic, and asks for what its client knows; what it prints is compared."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = """let A: [f32; i, k];
let B: [f32; k, j];
let C[i, j] = sum[k](A[i, k] * B[k, j]);
let loss = sum[i, j](C[i, j] * C[i, j]);
let dA = @loss / @A;
let y = los * 2.0;
"""

LUA = r"""
local function ask(method, params)
  local answers = vim.lsp.buf_request_sync(0, method, params, 20000) or {}
  for _, answer in pairs(answers) do return answer.result end
end
local function at(line, character)
  return { textDocument = vim.lsp.util.make_text_document_params(), position = { line = line, character = character } }
end
local out = {}
local function say(text) table.insert(out, text) end
vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end)
say("filetype " .. vim.bo.filetype)
for _, d in ipairs(vim.diagnostic.get(0)) do say("diagnostic " .. d.code .. " " .. d.lnum) end
say("hover " .. ask("textDocument/hover", at(2, 4)).contents.value:match("C: [^\n]*"))
say("definition " .. ask("textDocument/definition", at(2, 21))[1].range.start.line)
local references = at(2, 18)
references.context = { includeDeclaration = true }
say("references " .. #ask("textDocument/references", references))
say("symbols " .. #ask("textDocument/documentSymbol", at(0, 0)))
say("highlights " .. #ask("textDocument/documentHighlight", at(2, 18)))
local offered = {}
for _, item in ipairs(ask("textDocument/completion", at(5, 11)).items) do offered[item.label] = item end
say("completion " .. offered["loss"].detail)
local help = ask("textDocument/signatureHelp", at(2, 22))
say("signature " .. help.signatures[1].label)
say("lenses " .. #ask("textDocument/codeLens", at(0, 0)))
say("folds " .. #ask("textDocument/foldingRange", at(0, 0)))
say("workspace symbols " .. #ask("workspace/symbol", { query = "loss" }))
local items = vim.lsp.util.locations_to_items(ask("textDocument/definition", at(2, 21)), "utf-16")
say("location " .. items[1].lnum .. " " .. items[1].text)
local prepared = ask("textDocument/prepareRename", at(2, 18))
say("renames " .. prepared.placeholder)
local rename = at(2, 18)
rename.newName = "depth"
vim.lsp.util.apply_workspace_edit(ask("textDocument/rename", rename), "utf-16")
say("renamed " .. vim.api.nvim_buf_get_lines(0, 2, 3, true)[1])
local action = at(5, 8)
action.range = { start = action.position, ["end"] = action.position }
action.context = { diagnostics = {} }
vim.wait(1000)
vim.lsp.util.apply_workspace_edit(ask("textDocument/codeAction", action)[1].edit, "utf-16")
say("fixed " .. vim.api.nvim_buf_get_lines(0, 5, 6, true)[1])
vim.wait(20000, function() return #vim.diagnostic.get(0) == 0 end)
say("mistakes " .. #vim.diagnostic.get(0))
vim.api.nvim_buf_set_lines(0, 5, 6, true, { "let   y=loss*2.0 ;" })
vim.wait(500)
vim.lsp.buf.formatting_sync(nil, 20000)
say("formatted " .. vim.api.nvim_buf_get_lines(0, 5, 6, true)[1])
vim.fn.writefile(out, vim.env.EIN_OUT)
vim.cmd("qa!")
"""

NEOVIM = """filetype ein
diagnostic E0201 5
hover C: f32 [i, j]
definition 0
references 5
symbols 6
highlights 3
completion f32
signature sum[k](x)
lenses 3
folds 0
workspace symbols 1
location 1 let A: [f32; i, k];
renames k
renamed let C[i, j] = sum[depth](A[i, depth] * B[depth, j]);
fixed let y = loss * 2.0;
mistakes 0
formatted let y = loss * 2.0;
"""

LISP = r"""
(require 'eglot)
(require 'xref)
(load (expand-file-name "editors/emacs/ein-lang-mode.el" (getenv "EIN_ROOT")))
(setq ein-lang-path (getenv "EIN_BINARY") eglot-sync-connect 20 eglot-confirm-server-initiated-edits nil)
(find-file (getenv "EIN_FILE"))
(let ((said nil) (server nil))
  (defun say (format &rest rest) (push (apply #'format format rest) said))
  (say "mode %s" major-mode)
  (apply #'eglot--connect (eglot--guess-contact))
  (setq server (eglot-current-server))
  (unless eglot--managed-mode (eglot--managed-mode 1))
  (eglot--signal-textDocument/didOpen)
  (flymake-start)
  (let ((end (+ (float-time) 20)))
    (while (and (null (flymake-diagnostics)) (< (float-time) end)) (accept-process-output nil 0.1) (flymake-start)))
  (say "diagnostics %d" (length (flymake-diagnostics)))
  (goto-char (point-min))
  (forward-line 2)
  (forward-char 4)
  (let ((hover (jsonrpc-request server :textDocument/hover (eglot--TextDocumentPositionParams))))
    (say "hover %s" (and (string-match "C: [^\n]*" (plist-get (plist-get hover :contents) :value))
                         (match-string 0 (plist-get (plist-get hover :contents) :value)))))
  (forward-char 14)
  (let ((found (xref-backend-definitions 'eglot (xref-backend-identifier-at-point 'eglot))))
    (say "definition %s" (xref-location-line (xref-item-location (car found)))))
  (let ((found (xref-backend-references 'eglot (xref-backend-identifier-at-point 'eglot))))
    (say "references %d" (length found)))
  (say "symbols %d" (length (jsonrpc-request server :textDocument/documentSymbol (list :textDocument (eglot--TextDocumentIdentifier)))))
  (goto-char (point-max))
  (search-backward "los")
  (forward-char 3)
  (let* ((capf (eglot-completion-at-point)) (all (all-completions "los" (nth 2 capf))))
    (say "completion %s" (and (member "loss" (mapcar #'substring-no-properties all)) t)))
  (goto-char (point-min))
  (forward-line 2)
  (forward-char 18)
  (eglot-rename "depth")
  (goto-char (point-min))
  (forward-line 2)
  (say "renamed %s" (buffer-substring (line-beginning-position) (line-end-position)))
  (goto-char (point-max))
  (search-backward "los")
  (insert "   ")
  (eglot-format-buffer)
  (say "formatted %s" (buffer-substring (line-beginning-position) (line-end-position)))
  (eglot-shutdown server)
  (set-buffer-modified-p nil)
  (princ (concat (mapconcat #'identity (nreverse said) "\n") "\n")))
"""

EMACS = """mode ein-lang-mode
diagnostics 1
hover C: f32 [i, j]
definition 1
references 5
symbols 6
completion t
renamed let C[i, j] = sum[depth](A[i, depth] * B[depth, j]);
formatted let y = los * 2.0;
"""


def run(name, command, wanted, folder, environment, file=None):
    import os
    done = subprocess.run(command, env={**os.environ, **environment}, cwd=folder, capture_output=True, text=True, timeout=120)
    said = file.read_text() if file and file.exists() else done.stdout
    if said == wanted:
        print(f"{name}: fine")
        return True
    print(f"{name} says\n{said}\nnot\n{wanted}\n{done.stderr}")
    return False


def main():
    ein = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program, script, out = folder / "a.ein", folder / "test.lua", folder / "out.txt"
        program.write_text(PROGRAM)
        script.write_text(LUA)
        environment = {"EIN_OUT": str(out), "EIN_ROOT": str(ROOT), "EIN_BINARY": ein, "EIN_FILE": str(program), "HOME": str(folder)}
        fine = run("Neovim", ["nvim", "--headless", "-u", "NONE", "--cmd", f"set runtimepath+={ROOT}/editors/vim",
                              "--cmd", f"let g:ein_path = '{ein}'", "--cmd", "filetype plugin on | syntax on", str(program),
                              "-c", f"luafile {script}"], NEOVIM, folder, environment, out)
        program.write_text(PROGRAM)
        lisp = folder / "test.el"
        lisp.write_text(LISP)
        fine &= run("Emacs", ["emacs", "--batch", "--eval", "(package-initialize)", "-l", str(lisp)], EMACS, folder, environment)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
