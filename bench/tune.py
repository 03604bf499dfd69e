#!/usr/bin/env python3
"""Tries other values for the constants of the runtime's contractions, one at a time: `bench/tune.py [BUILD] [--out FILE]`.

Compiles src/runtime/contract.cc again with every candidate, runs all of them in turn, round after round, and writes for each
its speed on every size relative to that of the constants in the source. bench/contract_tuning.txt is the run that the
constants were chosen by; a candidate that is better by more than noise is marked. Needs AVX-512."""

import argparse
import math
import pathlib
import re
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "runtime" / "contract.cc"
CANDIDATES = {
    "kBlockBytes": ["1024", "4096"],
    "kBlockRows": ["96", "576"],
    "kPackedBytes": ["2 << 20", "32 << 20"],
    "kInPlaceRows": ["14", "126"],
    "kInPlaceBytes": ["4 << 10", "128 << 10"],
    "kLines": ["8", "64"],
    "kWideRows": ["4"],
}
NOISE = 0.03


def value_of(text, name):
    found = re.search(rf"\b{name} =\s*([^,;]+)[,;]", text)
    if not found:
        raise SystemExit(f"{SOURCE} has no {name}")
    return found.group(1)


def variant(text, name, value):
    return re.sub(rf"\b{name} =\s*[^,;]+([,;])", rf"{name} = {value}\1", text, count=1)


def compile_variant(text, build, folder, number):
    source, program = folder / f"contract{number}.cc", folder / f"run{number}"
    source.write_text(text)
    subprocess.run(["c++", "-std=c++20", "-O2", f"-I{ROOT}/src", str(ROOT / "bench/c/contract.cc"), str(source), "-o", str(program),
                    f"-L{build}", "-leinlang_rt", "-lpthread", "-lz"], check=True)
    return program


def speeds(program):
    out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {tuple(map(int, line.split()[:3])): float(line.split()[3]) for line in out.splitlines()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=str(ROOT / "build"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", default=str(ROOT / "bench" / "contract_tuning.txt"))
    options = parser.parse_args()
    text = SOURCE.read_text()
    names = [("as it is", "", "")]
    names += [(f"{n} {v}", n, v) for n, values in CANDIDATES.items() for v in values]
    with tempfile.TemporaryDirectory() as folder:
        programs = [compile_variant(variant(text, n, v) if n else text, options.build, pathlib.Path(folder), i)
                    for i, (_, n, v) in enumerate(names)]
        ratios = [{} for _ in names]
        base = {}
        for _ in range(options.rounds):
            now = [speeds(p) for p in programs]
            for i, measured in enumerate(now):
                for size, speed in measured.items():
                    ratios[i].setdefault(size, []).append(speed / now[0][size])
            for size, speed in now[0].items():
                base.setdefault(size, []).append(speed)
    sizes = list(base)
    lines = ["# m×n×k of f32, one thread; speed as a part of that with the constants of the source: " +
             ", ".join(f"{n} = {value_of(text, n)}" for n in CANDIDATES)]
    lines.append(f"{'':22}" + "".join(f"{'×'.join(map(str, s)):>16}" for s in sizes) + f"{'mean':>8}")
    lines.append(f"{'GFLOP/s':22}" + "".join(f"{statistics.median(base[s]):16.1f}" for s in sizes))
    for i, (label, _, _) in enumerate(names[1:], start=1):
        medians = [statistics.median(ratios[i][s]) for s in sizes]
        mean = math.exp(statistics.mean(map(math.log, medians)))
        better = "  better" if mean > 1 + NOISE else ""
        lines.append(f"{label:22}" + "".join(f"{m:16.2f}" for m in medians) + f"{mean:8.2f}{better}")
    pathlib.Path(options.out).write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
