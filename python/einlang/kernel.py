"""A Jupyter kernel for programs in Einlang: each cell is an entry of one session, as at the prompt `ein repl`.

    python -m einlang.kernel install [--user | --sys-prefix | --prefix FOLDER] [--name NAME]

A cell defines values and functions, shows the values of its expressions and runs the commands of the prompt, such as
`:grad loss W`. A definition with an old name replaces it, what depended on that is computed again, and a cell that is wrong
changes nothing. Plots that a cell saves as SVG are shown in it."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from typing import Any

from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

from ._native import Session, __version__

_BYTES = "utf-8"
_STATUS_NAMES = {1: "CompileError", 2: "UsageError", 3: "RunError"}
_INTERRUPTED = 130


def _bytes_before(text: str, characters: int) -> int:
    return len(text[:characters].encode(_BYTES))


def _characters_before(text: str, count: int) -> int:
    return len(text.encode(_BYTES)[:count].decode(_BYTES, "ignore"))


def parts_of(cell: str) -> list[str]:
    """The entries of a cell. A line that begins with `:` is a command by itself; what stands between commands is one entry,
    so that its definitions may have any order."""
    parts: list[list[str]] = [[]]
    lines: list[str] = cell.split("\n")
    for number, line in enumerate(lines):
        command = line.startswith(":") and Session.reads("\n".join(parts[-1])) != 1
        if command:
            parts += [[line], []]
            continue
        if not parts[-1]:  # messages count the lines of the cell
            parts[-1] = [""] * number
        parts[-1].append(line)
    texts = ["\n".join(part) for part in parts]
    return [text for text in texts if Session.reads(text) != 0]


class EinKernel(Kernel):
    """One session, and how its answers become messages of Jupyter."""

    implementation = "einlang"
    implementation_version = __version__
    language = "einlang"
    language_version = __version__
    language_info: dict[str, object] = {"name": "einlang", "mimetype": "text/x-einlang", "file_extension": ".ein", "version": __version__}
    banner: str = f"Einlang {__version__}. `:help` lists the commands."

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)  # type: ignore[no-untyped-call,unused-ignore]
        self.session_of_cells: Session = Session(cache=os.environ.get("EINLANG_CACHE") != "off", coloured=True)
        self._silent = False

    # ---- what a cell prints and shows

    def _send(self, kind: str, content: dict[str, Any]) -> None:
        if not self._silent:
            self.send_response(self.iopub_socket, kind, content)  # type: ignore[no-untyped-call,unused-ignore]

    def _stream(self, text: str, is_error: bool) -> None:
        if text:
            self._send("stream", {"name": "stderr" if is_error else "stdout", "text": text})

    def _picture(self, path: str, text: str) -> bool:
        taken = path.lower().endswith(".svg")
        if taken:
            self._send("display_data", {"data": {"image/svg+xml": text, "text/plain": f"<{path}>"}, "metadata": {}})
        return taken

    # ---- requests of the front end

    async def do_execute(self, code: str, silent: bool, store_history: bool = True, user_expressions: Any = None,
                         allow_stdin: bool = False, **_: Any) -> dict[str, Any]:
        self._silent = silent
        for part in parts_of(code):
            failed = self._enter(part)
            if failed is not None:
                return {**failed, "execution_count": self.execution_count}
        return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}

    def _enter(self, part: str) -> dict[str, Any] | None:
        """None, or the failure as the front end wants it."""
        try:
            status, text = self.session_of_cells.enter(part, f"In[{self.execution_count}]", self._stream, self._picture)
        except KeyboardInterrupt:
            status, text = _INTERRUPTED, "{}"
        reply = json.loads(text)
        problems = reply.get("problems", "")
        self._stream(reply.get("text", ""), False)
        if status == 0:
            self._stream(problems, True)
            return None
        if status == _INTERRUPTED:
            name, problems = "KeyboardInterrupt", "stopped; nothing has changed"
        else:
            name = _STATUS_NAMES.get(status, "Error")
        plain = re.sub(r"\x1b\[[0-9;]*m", "", problems).strip()
        failure = {"ename": name, "evalue": plain.partition("\n")[0], "traceback": problems.rstrip().split("\n")}
        self._send("error", failure)
        return {"status": "error", **failure}

    async def do_is_complete(self, code: str) -> dict[str, str]:
        unfinished = Session.reads(code) == 1
        return {"status": "incomplete", "indent": "    "} if unfinished else {"status": "complete"}

    async def do_complete(self, code: str, cursor_pos: int | None) -> dict[str, Any]:
        at = len(code) if cursor_pos is None else cursor_pos
        choices = json.loads(self.session_of_cells.complete(code, _bytes_before(code, at)))
        begin = _characters_before(code, choices[0]["begin"]) if choices else at
        types = [{"start": begin, "end": at, "text": c["text"], "type": "", "signature": c["detail"]} for c in choices]
        return {"status": "ok", "matches": [c["text"] for c in choices], "cursor_start": begin, "cursor_end": at,
                "metadata": {"_jupyter_types_experimental": types}}

    async def do_inspect(self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()) -> dict[str, Any]:
        text = self.session_of_cells.inspect(code, _bytes_before(code, cursor_pos))
        plain = "\n".join(line for line in text.split("\n") if not line.startswith("```"))
        data = {"text/plain": plain, "text/markdown": text} if text else {}
        return {"status": "ok", "found": bool(text), "data": data, "metadata": {}}


# ---- installing


def install(words: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m einlang.kernel install", description="Makes Jupyter know the kernel.")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for this user (the default outside of a virtual environment)")
    where.add_argument("--sys-prefix", action="store_true", help="for this environment of Python (the default inside of one)")
    where.add_argument("--prefix", help="for the environment in this folder")
    parser.add_argument("--name", default="einlang", help="what Jupyter calls it in commands (default: einlang)")
    chosen = parser.parse_args(words)
    from jupyter_client.kernelspec import KernelSpecManager

    own = sys.prefix != sys.base_prefix
    prefix = chosen.prefix or (sys.prefix if chosen.sys_prefix or (own and not chosen.user) else None)
    spec = {"argv": [sys.executable, "-m", "einlang.kernel", "-f", "{connection_file}"], "display_name": "Einlang",
            "language": "einlang", "interrupt_mode": "signal"}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with open(os.path.join(folder, "kernel.json"), "w") as file:
            json.dump(spec, file, indent=2)
        manager = KernelSpecManager()
        placed = manager.install_kernel_spec(folder, chosen.name, user=prefix is None, prefix=prefix)
    print(f"installed in {placed}")


def main() -> None:
    if sys.argv[1:2] == ["install"]:
        install(sys.argv[2:])
    else:
        IPKernelApp.launch_instance(kernel_class=EinKernel)  # type: ignore[no-untyped-call,unused-ignore]


if __name__ == "__main__":
    main()
