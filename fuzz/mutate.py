#!/usr/bin/env python3
"""One slip of the pen in a good program: what does `ein check` say?

    fuzz/mutate.py build/ein [--count N] [--seed S] [-k FILTER] [--worst N]

Takes programs of tests/run, changes one token of each (deletes it, doubles it, puts another one of the program in
its place) and checks the result. Fails when the compiler crashes, hangs or reports a fault of its own; prints how
many errors one slip gives on average and the programs that give the most.
"""

import argparse
import collections
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|\d+(?:\.\d+)?|\w+|\*\*|\.\.=|\.\.|::|->|=>|==|!=|<=|>=|&&|\|\||\S')


def tokens_of(text):
    return [m for m in TOKEN.finditer(text) if not m.group().startswith("//")]


def slip(text, rng):
    tokens = tokens_of(text)
    at = rng.choice(tokens)
    kind = rng.choice(["delete", "double", "replace"])
    new = {"delete": "", "double": at.group() + " " + at.group(), "replace": rng.choice(tokens).group()}[kind]
    line = text.count("\n", 0, at.start()) + 1
    what = f"{kind} `{at.group()}` in line {line}" + (f" by `{new}`" if kind == "replace" else "")
    return what, text[:at.start()] + new + text[at.end():]


def check(ein, text, folder):
    path = os.path.join(folder, "slip.ein")
    with open(path, "w") as out:
        out.write(text)
    try:
        run = subprocess.run([ein, "check", "--error-format=short", path], capture_output=True, text=True,
                             errors="replace", timeout=30)
    except subprocess.TimeoutExpired:
        return "takes longer than 30 s", []
    codes = re.findall(r"error\[(E\d+)\]|(E\d{4})", run.stderr)
    fault = None if run.returncode in (0, 1) else f"exit status {run.returncode}: {run.stderr[-300:]}"
    return fault, [a or b for a, b in codes]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ein")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worst", type=int, default=10)
    parser.add_argument("-k", default="")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    folder = os.path.join(ROOT, "tests", "run")
    names = sorted(os.path.join(path, f) for path, _, files in os.walk(folder) for f in files
                   if f.endswith(".ein") and args.k in os.path.join(path, f))
    # A program that imports others needs its folder around it.
    names = [n for n in names if tokens_of(open(n).read()) and "use " not in open(n).read()]
    faults, found = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(args.count):
            name = rng.choice(names)
            what, text = slip(open(name).read(), rng)
            fault, codes = check(args.ein, text, scratch)
            label = f"{os.path.relpath(name, ROOT)}: {what}"
            if fault:
                faults.append(f"{label}: {fault}")
            if codes:
                found.append((len(codes), label, collections.Counter(codes)))
    found.sort(key=lambda f: -f[0])
    wrong = len(found)
    errors = sum(f[0] for f in found)
    print(f"{args.count} slips, {wrong} rejected, {errors / max(1, wrong):.2f} errors each")
    for count, label, codes in found[:args.worst]:
        print(f"  {count:3}  {label}  " + " ".join(f"{c}x{n}" for c, n in codes.most_common()))
    for fault in faults:
        print("FAULT " + fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
