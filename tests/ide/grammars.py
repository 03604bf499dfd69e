"""The grammars of editors see in a program what the lexer sees: comments, strings, numbers, and the rest. Usage:
grammars.py EIN [--textmate FOLDER] [--vim] [--emacs] [--tree-sitter SEE] [--random FUZZ_PROGRAMS] [FILE…]

What the lexer sees comes from the language server's semantic tokens. `FOLDER` has `node_modules` with vscode-textmate and
vscode-oniguruma, which read the grammar of the VS Code package. `SEE` is tree_sitter.c, compiled with editors/tree-sitter/src: its
trees have no mistake in a program without one, and after a broken statement they go on with the next. Without FILE: every program
of the repository whose text has no mistake for the lexer, and 1,000 that `FUZZ_PROGRAMS` makes. Emacs has no numbers. The
placeholders of strings, `{x:.3f}`, are a matter of taste: there only comments are compared."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from client import Client, uri

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLASSES = {"comment": "c", "string": "s", "number": "n"}

TEXTMATE = r"""
const fs = require("node:fs"), path = require("node:path");
const [folder, grammarFile, listFile] = process.argv.slice(2);
const load = (name) => require(path.join(folder, "node_modules", name));
const oniguruma = load("vscode-oniguruma"), textmate = load("vscode-textmate");
const wasm = fs.readFileSync(path.join(folder, "node_modules/vscode-oniguruma/release/onig.wasm")).buffer;
(async () => {
  await oniguruma.loadWASM(wasm);
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(grammarFile, "utf8"), grammarFile),
  });
  const grammar = await registry.loadGrammar("source.ein");
  for (const file of JSON.parse(fs.readFileSync(listFile, "utf8"))) {
    let stack = textmate.INITIAL;
    const lines = [];
    for (const line of fs.readFileSync(file, "utf8").split("\n")) {
      const result = grammar.tokenizeLine(line, stack);
      stack = result.ruleStack;
      let classes = "";
      for (const token of result.tokens) {
        const scopes = token.scopes.join(" ");
        const inside = scopes.includes("meta.interpolation");
        const kind = scopes.includes("comment.") ? "c" : scopes.includes("constant.numeric") ? "n"
          : inside ? "?" : scopes.includes("string.") ? "s" : ".";
        classes += kind.repeat(Math.max(0, Math.min(token.endIndex, line.length) - token.startIndex));
      }
      lines.push(classes);
    }
    console.log(JSON.stringify(lines));
  }
})();
"""

VIM = r"""
local names = { einComment = "c", einDoc = "c", einString = "s", einEscape = "s", einNumber = "n" }
local function class(id)
  return names[vim.fn.synIDattr(id, "name")] or "."
end
local out = {}
for _, file in ipairs(vim.fn.json_decode(table.concat(vim.fn.readfile(vim.env.EIN_LIST), "\n"))) do
  vim.cmd("silent edit " .. vim.fn.fnameescape(file))
  vim.cmd("syntax sync fromstart")
  local lines = {}
  for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, true)) do
    local classes, column = {}, 1
    while column <= #line do
      local stack = vim.fn.synstack(number, column)
      local kind, inside = ".", false
      for _, id in ipairs(stack) do
        local name = vim.fn.synIDattr(id, "name")
        inside = inside or name == "einPlaceholder"
      end
      if #stack > 0 then kind = class(stack[#stack]) end
      if inside and kind ~= "n" and kind ~= "c" then kind = "?" end
      local byte = line:byte(column)
      local size = byte < 0x80 and 1 or byte < 0xE0 and 2 or byte < 0xF0 and 3 or 4
      table.insert(classes, size == 4 and kind .. kind or kind)
      column = column + size
    end
    table.insert(lines, table.concat(classes))
  end
  if vim.bo.endofline then table.insert(lines, "") end
  table.insert(out, vim.fn.json_encode(lines))
  vim.cmd("silent bwipeout!")
end
vim.fn.writefile(out, vim.env.EIN_OUT)
vim.cmd("qa!")
"""

LISP = r"""
(require 'json)
(load (expand-file-name "editors/emacs/ein-lang-mode.el" (getenv "EIN_ROOT")) nil t)
(let ((files (append (json-read-file (getenv "EIN_LIST")) nil)) (coding-system-for-read 'utf-8-unix))
  (dolist (file files)
    (with-temp-buffer
      (insert-file-contents file)
      (ein-lang-mode)
      (font-lock-ensure)
      (let ((text (buffer-string)) (classes nil) (lines nil))
        (dotimes (i (length text))
          (let* ((face (get-text-property (1+ i) 'face)) (faces (if (listp face) face (list face))) (c (aref text i))
                 (kind (cond ((or (memq 'font-lock-comment-face faces) (memq 'font-lock-comment-delimiter-face faces)) "c")
                             ((memq 'font-lock-string-face faces) "s")
                             (t "."))))
            (if (= c ?\n)
                (progn (push (apply #'concat (nreverse classes)) lines) (setq classes nil))
              (push kind classes)
              (when (> c #xFFFF) (push kind classes)))))
        (push (apply #'concat (nreverse classes)) lines)
        (princ (concat (json-encode (vconcat (nreverse lines))) "\n"))))))
"""


def units(text):
    return len(text.encode("utf-16-le")) // 2


def wanted_of(client, path):
    """One letter for each unit of UTF-16, line by line; None when the lexer has something to say."""
    text = path.read_bytes().decode("utf-8")
    where = uri(path)
    client.open(where, text)
    data = client.ask("textDocument/semanticTokens/full", {"textDocument": {"uri": where}})["data"]
    mistakes = client.mistakes(where, 1)
    client.tell("textDocument/didClose", {"textDocument": {"uri": where}})
    if any(d["code"].startswith("E01") for d in mistakes) or "\r" in text:
        return None, False
    legend = client.server["capabilities"]["semanticTokensProvider"]["legend"]["tokenTypes"]
    lines = [["."] * units(line) for line in text.split("\n")]
    row = column = 0
    strings = []
    for i in range(0, len(data), 5):
        column = column + data[i + 1] if data[i] == 0 else data[i + 1]
        row += data[i]
        kind = CLASSES.get(legend[data[i + 3]], ".")
        for k in range(column, column + data[i + 2]):
            lines[row][k] = kind
        if kind == "s":
            strings.append((row, column, column + data[i + 2]))
    # Between two pieces of a string stands a placeholder, with its braces and its format.
    for (row, begin, end), (after, start, _) in zip(strings, strings[1:]):
        line = text.split("\n")[row]
        wide = "".join(c if ord(c) <= 0xFFFF else c + " " for c in line)
        if row == after and wide[end - 1] == "{":
            stop = wide.find("}", start)
            if '"' in wide[end:start + 1]:  # a string in a string: where each ends only the lexer knows
                begin, stop = wide.index('"'), wide.rindex('"')
                end = begin + 1
            lines[row][end - 1:stop + 1] = "?" * (stop + 2 - end)
    return ["".join(line) for line in lines], True


# A statement that is broken off. Where an operand is missing, the statement behind it may be taken for that operand; those after
# that one are what they were.
BROKEN = ["let broken = 3 + ;", "let broken = sum[i](x[i];", "let broken[i = 3;", "fn broken(x { x }", "let = 3;", "print(;"]


def tree_sitter(see, paths, wanted, folder):
    def said(files, *options):
        done = subprocess.run([see, *options], input="".join(f"{f}\n" for f in files), capture_output=True, text=True, timeout=1800, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    for query in sorted((ROOT / "editors/tree-sitter/queries").glob("*.scm")):
        subprocess.run([see, "--query", str(query)], check=True)
    seen = said(paths)
    complaints = differences("tree-sitter", paths, wanted, [s["lines"] for s in seen])
    complaints += [f"tree-sitter: {path}:{s['mistakes'][0] + 1}: a mistake in a good program" for path, s in zip(paths, seen) if s["mistakes"]]
    broken = []
    for k, path in enumerate(paths):
        broken.append(folder / f"{k}.ein")
        broken[-1].write_text(BROKEN[k % len(BROKEN)] + "\n" + path.read_text())
    pairs = list(zip(paths, said(paths, "--statements"), said(broken, "--statements")))
    for k, (path, whole, after) in enumerate(pairs):
        want = [s for s in whole["statements"] if s not in ("hash_bang", "comment")][1:]
        has = [s for s in after["statements"] if s != "comment"]
        if want != has[len(has) - len(want):]:
            complaints.append(f"tree-sitter: {path} after `{BROKEN[k % len(BROKEN)]}`\n  {' '.join(want)[:300]}\n  {' '.join(has)[:300]}")
    return complaints


def differences(name, paths, wanted, got):
    complaints = []
    for path, want, has in zip(paths, wanted, got):
        lines = path.read_text().split("\n")
        for number, (w, h) in enumerate(zip(want, has), 1):
            same = len(w) == len(h) and all(a == b or a == "?" and b != "c" or b == "?" and a in "s." or
                                            name == "Emacs" and (a == "n" and b == "." or a in "?n" and b == "s")
                                            for a, b in zip(w, h))
            if not same:
                complaints.append(f"{name}: {path}:{number}\n  {lines[number - 1]}\n  {w}\n  {h}")
        if len(want) != len(has):
            complaints.append(f"{name}: {path}: {len(has)} lines, not {len(want)}")
    return complaints


def run(name, command, environment, paths, wanted, folder):
    import os
    listed, out = folder / "list.json", folder / "out.txt"
    listed.write_text(json.dumps([str(p) for p in paths]))
    out.unlink(missing_ok=True)
    done = subprocess.run(command + ([str(listed)] if name == "TextMate" else []), capture_output=True, text=True, timeout=1800,
                          env={**os.environ, "EIN_ROOT": str(ROOT), "EIN_LIST": str(listed), "EIN_OUT": str(out), **environment})
    said = out.read_text() if out.exists() else done.stdout
    got = [json.loads(line) for line in said.splitlines()]
    if len(got) != len(paths):
        return [f"{name} read {len(got)} of {len(paths)} files\n{done.stderr}"]
    return differences(name, paths, wanted, got)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ein")
    parser.add_argument("--textmate")
    parser.add_argument("--vim", action="store_true")
    parser.add_argument("--every", type=int, default=5, help="for Vim, which is slow: one program of so many (default: 5)")
    parser.add_argument("--emacs", action="store_true")
    parser.add_argument("--tree-sitter")
    parser.add_argument("--random")
    parser.add_argument("files", nargs="*")
    options = parser.parse_intermixed_args()
    if not (options.textmate or options.vim or options.emacs or options.tree_sitter):
        sys.exit("nothing to compare: give --textmate FOLDER, --vim, --emacs or --tree-sitter SEE")
    listed = subprocess.run(["git", "ls-files", "*.ein"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    paths = [pathlib.Path(f).resolve() for f in options.files] or [ROOT / f for f in listed]
    complaints, every = [], 1 if options.files else options.every
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if options.random:
            made = subprocess.run([options.random, "--count", "1000", "--seed", "1", "--native", "0", "--show"], capture_output=True, text=True, check=True).stdout
            for k, text in enumerate(made.split("// seed ")[1:]):
                paths.append(folder / f"random{k}.ein")
                paths[-1].write_text("// seed " + text.partition(" directions across")[0].rstrip(" 0123456789"))
        client = Client(str(pathlib.Path(options.ein).resolve()))
        pairs = [(p, wanted_of(client, p)) for p in paths if valid(p)]
        client.close()
        paths, wanted = [p for p, (w, good) in pairs if good], [w for _, (w, good) in pairs if good]
        if options.tree_sitter:
            complaints += tree_sitter(options.tree_sitter, paths, wanted, folder)
        if options.textmate:
            script = folder / "textmate.js"
            script.write_text(TEXTMATE)
            grammar = ROOT / "editors/vscode/syntaxes/ein.tmLanguage.json"
            complaints += run("TextMate", ["node", str(script), str(pathlib.Path(options.textmate).resolve()), str(grammar)], {}, paths, wanted, folder)
        if options.vim:
            script = folder / "colours.lua"
            script.write_text(VIM)
            complaints += run("Vim", ["nvim", "--headless", "-u", "NONE", "--cmd", f"set runtimepath+={ROOT}/editors/vim", "--cmd", "let g:ein_lsp = 0",
                                      "--cmd", "filetype plugin on | syntax on", "-c", f"luafile {script}"], {"HOME": str(folder)}, paths[::every], wanted[::every], folder)
        if options.emacs:
            script = folder / "colours.el"
            script.write_text(LISP)
            complaints += run("Emacs", ["emacs", "--batch", "-l", str(script)], {"HOME": str(folder)}, paths, wanted, folder)
    print("\n".join(complaints[:60]))
    print(f"{len(paths)} programs: {len(complaints) or 'no'} lines differ")
    sys.exit(1 if complaints or len(paths) < (1 if options.files else 1000) else 0)


def valid(path):
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


if __name__ == "__main__":
    main()
