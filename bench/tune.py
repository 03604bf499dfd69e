#!/usr/bin/env python3
"""Tries other values for the numbers of src/base/tuning.def, one at a time.

    bench/tune.py [BUILD] [--only NAME …] [--rounds N] [--write] [--out FILE]

The numbers of the compiler are tried with `ein bench --tune` on the programs of bench/programs; those of the runtime's
contractions by compiling src/runtime/contract.cc again. All candidates of a number run in turn, round after round, and are
compared with the value in the file by the geometric mean of their speeds. A candidate that is better by more than noise
is marked, and with --write put into the file. bench/tuning.txt is the last whole run."""

import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "src/base/tuning.def"
NOISE = 0.03
LINE = re.compile(r'EIN_TUNE(_RUNTIME)?\((\w+), ([^,]+),(?: ([^,]+), ([^,]+),)? "')


def numbers():
    """(name, value as written, least, most) of the file; the ends are None for numbers of the runtime."""
    out = []
    for runtime, name, value, least, most in LINE.findall(FILE.read_text()):
        out.append((name, value, None if runtime else eval(least), None if runtime else eval(most)))
    return out


def candidates(value, least, most):
    """Half and twice the value, within its ends."""
    near = {value // 2, value * 2}
    if least is not None:
        near = {min(max(v, least), most) for v in near}
    return sorted(near - {value, 0} | ({0} if least == 0 and value <= 2 else set()))


def changed(text, name, value):
    return re.sub(rf"(EIN_TUNE(?:_RUNTIME)?\({name}, )[^,]+,", rf"\g<1>{value},", text)


# ---- the compiler's ------------------------------------------------------------------------------

def program_seconds(ein, program, name, value):
    done = subprocess.run([ein, "bench", program, "--no-peaks", "--threads", "1", "--repeat", "20", "--format", "json",
                           "--tune", f"{name}={value}"], capture_output=True, text=True, check=True)
    return min(json.loads(done.stdout)["runs"])


def compiler_speeds(ein, programs, name, values, rounds):
    """By value: the speed on every program as a part of that with values[0]."""
    ratios = {v: [] for v in values}
    for program in programs:
        seen = {v: [] for v in values}
        for _ in range(rounds):
            for v in values:
                seen[v].append(program_seconds(ein, program, name, v))
        base = statistics.median(seen[values[0]])
        for v in values:
            ratios[v].append(base / statistics.median(seen[v]))
    return ratios


# ---- the runtime's -------------------------------------------------------------------------------

def contraction(build, folder, name, value):
    """bench/c/contract.cc, compiled with another value."""
    (folder / "base").mkdir(parents=True)
    (folder / "base/tuning.def").write_text(changed(FILE.read_text(), name, value))
    program = folder / "run"
    subprocess.run(["c++", "-std=c++20", "-O2", f"-I{folder}", f"-I{ROOT}/src", str(ROOT / "bench/c/contract.cc"),
                    str(ROOT / "src/runtime/contract.cc"), "-o", str(program), f"-L{build}", "-leinlang_rt", "-lpthread", "-lz"],
                   check=True)
    return program


def contraction_speeds(build, name, values, rounds):
    def speeds(program):
        out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        return [float(line.split()[3]) for line in out.splitlines()]

    with tempfile.TemporaryDirectory() as folder:
        programs = [contraction(build, pathlib.Path(folder) / str(i), name, v) for i, v in enumerate(values)]
        seen = [[speeds(p) for p in programs] for _ in range(rounds)]
    ratios = {}
    for i, v in enumerate(values):
        sizes = range(len(seen[0][0]))
        ratios[v] = [statistics.median(r[i][s] / r[0][s] for r in seen) for s in sizes]
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=str(ROOT / "build"))
    parser.add_argument("--only", nargs="+", help="these numbers")
    parser.add_argument("--programs", nargs="+", help="files of bench/programs, without .ein")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put what is better into the file")
    parser.add_argument("--out", help="write the table here too")
    options = parser.parse_args()
    programs = sorted((ROOT / "bench/programs").glob("*.ein"))
    if options.programs:
        programs = [ROOT / f"bench/programs/{p}.ein" for p in options.programs]
    unknown = set(options.only or []) - {n for n, *_ in numbers()}
    if unknown:
        sys.exit(f"{FILE} has no {', '.join(sorted(unknown))}")
    lines = ["# speed as a part of that with the number of the file: geometric mean, least, most"]
    print(lines[0])
    for name, written, least, most in numbers():
        if options.only and name not in options.only:
            continue
        value = eval(written)
        values = [value, *candidates(value, least, most)]
        if least is None:
            ratios = contraction_speeds(options.build, name, values, options.rounds)
        else:
            ratios = compiler_speeds(pathlib.Path(options.build) / "ein", programs, name, values, options.rounds)
        best = (1 + NOISE, None)
        for v in values[1:]:
            mean = math.exp(statistics.mean(map(math.log, ratios[v])))
            best = max(best, (mean, v), key=lambda b: b[0])
            better = "  better" if mean > 1 + NOISE else ""
            lines.append(f"{name:22}{written:>10} → {v:<10}{mean:6.2f}{min(ratios[v]):6.2f}{max(ratios[v]):6.2f}{better}")
            print(lines[-1], flush=True)
        if options.write and best[1] is not None:
            FILE.write_text(changed(FILE.read_text(), name, best[1]))
    if options.out:
        pathlib.Path(options.out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
