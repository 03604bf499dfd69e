#!/usr/bin/env python3
"""One slip of the pen in a good program: what does `ein check` say?

    fuzz/mutate.py build/ein [--count N] [--seed S] [-k FILTER] [--worst N] [-j N]
    fuzz/mutate.py build/ein --axes [--count N] [--seed S] [--least PERCENT] [--missed]
    fuzz/mutate.py build/ein --alarms

Takes programs of tests/run, changes one token of each (deletes it, doubles it, replaces it by another one of the
program) and checks the result. Fails when the compiler crashes, hangs or reports a fault of its own; prints how
many errors one slip gives on average and the programs that give the most.

--axes makes the mistakes of axes.py instead and prints how many of each kind the compiler says anything about; fails
below --least. --alarms looks for warnings about axes in programs that are right: the library, its tests, examples,
tests/run and tests/grad, and prints them.
"""

import argparse
import collections
import concurrent.futures
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile

import axes

AXIS_WARNINGS = ("W0301", "W0304", "W0305")
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


def run_check(ein, path):
    try:
        run = subprocess.run([ein, "check", "--error-format=short", path], capture_output=True, text=True,
                             errors="replace", timeout=60)
    except subprocess.TimeoutExpired:
        return "takes longer than 60 s", []
    codes = re.findall(r"\b([EW]\d{4})\b", run.stderr)
    fault = None if run.returncode in (0, 1) else f"exit status {run.returncode}: {run.stderr[-300:]}"
    return fault, codes


COUNTER = itertools.count()


def check(ein, text, folder):
    path = os.path.join(folder, f"slip{next(COUNTER)}.ein")
    with open(path, "w") as out:
        out.write(text)
    try:
        return run_check(ein, path)
    finally:
        os.remove(path)


def measure_axes(args):
    with tempfile.TemporaryDirectory() as scratch:
        def said(text):
            fault, codes = check(args.ein, text, scratch)
            return fault, bool(codes)
        rates, missed, faults = axes.measure(said, os.path.join(ROOT, "fuzz", "axes"), args.count, args.seed, args.j)
    caught, all_of_them = (sum(r[i] for r in rates.values()) for i in (0, 1))
    for kind in axes.KINDS:
        if kind in rates:
            print(f"{kind:20} {rates[kind][0]:5} of {rates[kind][1]:5}  {100 * rates[kind][0] / rates[kind][1]:5.1f} %")
    percent = 100 * caught / max(1, all_of_them)
    print(f"{'all':20} {caught:5} of {all_of_them:5}  {percent:5.1f} %")
    for line in missed if args.missed else []:
        print("  nothing said: " + line)
    for fault in faults:
        print("FAULT " + fault)
    if percent < args.least:
        print(f"less than {args.least} %")
    return 1 if faults or percent < args.least else 0


def find_alarms(args):
    places = ["stdlib", "examples", "tests/run", "tests/grad", "tests/stdlib"]
    names = sorted(os.path.join(path, f) for place in places for path, _, files in os.walk(os.path.join(ROOT, place))
                   for f in files if f.endswith(".ein"))
    lets = sum(len(re.findall(r"^\s*let\b", open(n).read(), re.M)) for n in names)
    found = 0
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        for name, (_, codes) in zip(names, pool.map(lambda n: run_check(args.ein, n), names)):
            alarms = [c for c in codes if c in AXIS_WARNINGS]
            found += len(alarms)
            if alarms:
                print(f"{os.path.relpath(name, ROOT)}: {' '.join(alarms)}")
    print(f"{found} alarms in {len(names)} files, {lets} statements")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ein")
    parser.add_argument("--count", type=int, default=1000, help="0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worst", type=int, default=10)
    parser.add_argument("-k", default="")
    parser.add_argument("-j", type=int, default=1)
    parser.add_argument("--axes", action="store_true")
    parser.add_argument("--alarms", action="store_true")
    parser.add_argument("--least", type=float, default=0)
    parser.add_argument("--missed", action="store_true")
    args = parser.parse_args()
    if args.axes or args.alarms:
        sys.exit(measure_axes(args) if args.axes else find_alarms(args))
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
            codes = [c for c in codes if c[0] == "E"]
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
