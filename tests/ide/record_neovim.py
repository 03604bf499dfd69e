"""A session in Neovim as somebody types it, kept for `asciinema play`: a mistake and its fix, what a request says, a coordinate
renamed. Usage: record_neovim.py EIN OUT.cast

What must appear is waited for, so the recording is a test, too."""

import json
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from terminal import Terminal  # noqa: E402

PROGRAM = """let A: [f32; i, k];
let B: [f32; k, j];
let C[i, j] = sum[k](A[i, k] * B[k, j]);
let loss = sum[i, j](C[i, j] * C[i, j]);
let dA = @loss / @A;
"""
SETTINGS = """
set notermguicolors signcolumn=no updatetime=200 nomore
nnoremap K <cmd>lua vim.lsp.buf.hover()<cr>
nnoremap R :lua vim.lsp.buf.rename("")<left><left>
nnoremap F <cmd>lua vim.lsp.buf.code_action()<cr>
"""


class Recorded(Terminal):
    def __init__(self, *arguments, **more):
        self.begin, self.events = time.monotonic(), []
        super().__init__(*arguments, **more)

    def _read(self, seconds):
        before = len(self.seen)
        alive = super()._read(seconds)
        if len(self.seen) > before:
            text = self.seen[before:]
            self.events.append([round(time.monotonic() - self.begin, 3), "o", text])
        return alive

    def slowly(self, text):
        for c in text:
            self.type(c)
            self.watch(0.07)

    def watch(self, seconds):
        """Reads what appears meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._read(min(left, 0.05))


def main():
    ein, out = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "program.ein").write_text(PROGRAM)
        (folder / "settings.vim").write_text(SETTINGS)
        nvim = next(p for p in (pathlib.Path(d) / "nvim" for d in ("/usr/bin", "/usr/local/bin")) if p.exists())
        command = [str(nvim), "-u", "NONE", "--cmd", f"set runtimepath+={ROOT}/editors/vim", "--cmd", f"let g:ein_path = '{ein}'",
                   "--cmd", "filetype plugin on | syntax on", "-c", "source settings.vim", "program.ein"]
        with Recorded(command, cwd=str(folder), HOME=str(folder), XDG_STATE_HOME=str(folder)) as nvim:
            nvim.expect("@loss")
            nvim.watch(1.5)
            nvim.slowly("Golet y = los * 2.0;\x1b")
            nvim.watch(2.5)
            nvim.slowly("5bF")
            nvim.expect("use `loss`")
            nvim.watch(1)
            nvim.slowly("1\r")
            nvim.expect("loss")
            nvim.watch(1.5)
            nvim.slowly("5G11|K")
            nvim.expect("sums j")
            nvim.watch(2.5)
            nvim.slowly("3G19|R")
            nvim.slowly("depth\r")
            nvim.expect("depth")
            nvim.watch(1.5)
            nvim.slowly(":wq\r")
            status = nvim.status()
        text = (folder / "program.ein").read_text()
        wanted = PROGRAM.replace("k", "depth") + "let y = loss * 2.0;\n"
        if status != 0 or text != wanted:
            sys.exit(f"Neovim ended with {status} and left\n{text}")
        header = {"version": 2, "width": 100, "height": 30, "title": "Einlang in Neovim"}
        out.write_text("".join(json.dumps(line) + "\n" for line in [header, *nvim.events]))
        print(f"{out}: {len(nvim.events)} events, {nvim.events[-1][0]:.0f} s")


if __name__ == "__main__":
    main()
