#!/usr/bin/env python3
"""How long the language server and the prompt take: the median and the worst, in milliseconds of wall time, from request to
answer.

    bench/tools.py build/ein [--lines 2000] [--repeat 100] [--json FILE]

Programs are every kind of bench/check.py of that length, and every example. An edit changes one character of a comment at the
end of the program; full diagnostics count from the end of the 150 ms of quiet after quick ones. Entries
of the prompt are timed on a terminal, without the cache of compiled programs. What they should take at most stands in brackets."""

import argparse
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "ide"), str(HERE.parent / "tests" / "cli")]
import check  # noqa: E402
from client import Client, Refused, at  # noqa: E402
from terminal import Terminal  # noqa: E402

QUIET = 150.0
FAST = ["hover", "definition", "signatureHelp", "completion"]
WHOLE = ["semanticTokens/full", "documentSymbol", "foldingRange", "formatting"]


def elapsed(f):
    begin = time.perf_counter()
    f()
    return 1000 * (time.perf_counter() - begin)


def memory(client):
    status = pathlib.Path(f"/proc/{client.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def measure(ein, name, text, repeat):
    where, version = f"file:///nowhere/{name}.ein", 1
    out = {}

    def first():
        nonlocal client
        client = Client(ein)
        client.open(where, text)
        client.mistakes(where, 1)

    client = None
    out["start"] = [elapsed(first)]
    lines = text.split("\n")
    end = at(len(lines) - 1, len(lines[-1]))
    client.change(where, 2, [{"range": {"start": end, "end": end}, "text": "\n// "}])
    version, last = 2, at(len(lines), 3)
    client.mistakes(where, version)

    for _ in range(repeat):
        version += 1

        def edit():
            client.change(where, version, [{"range": {"start": last, "end": last}, "text": "x"}])
            client.mistakes(where, version)
        out.setdefault("quick", []).append(elapsed(edit))
    for _ in range(max(3, repeat // 10)):
        version += 1
        client.change(where, version, [{"range": {"start": last, "end": last}, "text": "x"}])
        client.mistakes(where, version)
        client.diagnostics.pop(where)
        out.setdefault("full", []).append(elapsed(lambda: client.mistakes(where, version)) - QUIET)
    for k in range(repeat):
        line = (k * 7919) % len(lines)
        place = {"textDocument": {"uri": where}, "position": at(line, min(6, len(lines[line]))), "options": {}}
        for method in FAST + WHOLE:
            if method in WHOLE and k % 10:
                continue

            def ask():
                try:
                    client.ask("textDocument/" + method, place)
                except Refused:
                    pass
            out.setdefault("answers" if method in FAST else "whole", []).append(elapsed(ask))
    out["memory"] = [memory(client)]
    client.close()
    return out


def prompt(ein, repeat):
    """The prompt: its start, a small entry, and the 20th and the 200th definition of a session."""
    out = {key: [] for key in PROMPT}
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        def start():
            made = Terminal([os.path.abspath(ein), "repl"], cwd=folder, XDG_STATE_HOME=folder, EINLANG_CACHE="off")
            made.expect("> ")
            return made

        for _ in range(repeat):
            begin = time.perf_counter()
            with start() as terminal:
                out["prompt"].append(1000 * (time.perf_counter() - begin))
                terminal.enter("let x = [1.0, 2.0, 3.0]")
                out["entry"].append(elapsed(lambda: terminal.enter(f"let y[i] = x[i] * {rng.random():.6f}")))
                out["entry"].append(elapsed(lambda: terminal.enter(f"sum[i](y[i]) + {rng.random():.6f}")))
        for _ in range(max(1, repeat // 20)):
            with start() as terminal:
                terminal.enter("let v0 = [1.0, 2.0, 3.0]")
                for k in range(1, 206):
                    spent = elapsed(lambda: terminal.enter(f"let v{k}[i] = v{k - 1}[i] * {rng.random():.6f} + v{k // 2}[i]"))
                    if abs(k - 20) <= 5:
                        out["20"].append(spent)
                    if abs(k - 200) <= 5:
                        out["200"].append(spent)
    return out


PROMPT = {"prompt": "prompt: start", "entry": "prompt: a small entry", "20": "prompt: the 20th definition (15th to 25th)",
          "200": "prompt: the 200th definition (195th to 205th)"}
BARS = {"start": "60", "quick": "50 100", "full": "150 300", "answers": "2 10", "whole": "10 20", "memory": "120",
        "prompt": "30", "entry": "60", "20": "", "200": "twice the 20th"}
ROWS = {"start": "start to first diagnostics", "quick": "edit to quick diagnostics", "full": "full diagnostics, after quiet",
        "answers": "hover, definition, signature, completion", "whole": "tokens, symbols, folding, formatting", "memory": "memory, MB"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ein")
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=100)
    parser.add_argument("--json")
    options = parser.parse_args()
    programs = {name: "\n".join(kind(options.lines)) for name, kind in check.KINDS.items()}
    programs |= {p.stem: p.read_text() for p in sorted((HERE.parent / "examples").glob("*.ein"))}
    figures = {}
    print(f"{'':24}" + "".join(f"{key:>18}" for key in ROWS))
    for name, text in programs.items():
        figures[name] = measure(options.ein, name, text, options.repeat)
        cells = [f"{statistics.median(figures[name][key]):8.1f} {max(figures[name][key]):8.1f}" for key in ROWS]
        print(f"{name:24}" + "".join(f"{c:>18}" for c in cells), flush=True)
    print("\nmedian and worst, milliseconds:")
    for key, title in ROWS.items():
        everything = [v for f in figures.values() for v in f[key]]
        print(f"  {title:44} {statistics.median(everything):8.1f} {max(everything):8.1f}  [{BARS[key]}]")
    figures["prompt"] = prompt(options.ein, options.repeat)
    for key, title in PROMPT.items():
        print(f"  {title:44} {statistics.median(figures['prompt'][key]):8.1f} {max(figures['prompt'][key]):8.1f}  [{BARS[key]}]")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
