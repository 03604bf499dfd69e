#!/usr/bin/env python3
"""Runs one libFuzzer target for a while, from the repository's programs and a dictionary.

    fuzz/run.py BINARY --seconds N [--seed S] [--corpus FOLDER] [--found FOLDER]

Fails on a crash, a leak, an input that takes longer than 10 s or more than 2 GB; the input is left in FOUND.
Without --corpus what is learnt is thrown away, so that a run depends on the sources and the seed alone.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def collect_seeds(folder):
    count = 0
    for top in ("tests", "examples"):
        for path, folders, files in os.walk(os.path.join(ROOT, top)):
            if "stdlib" in folders:  # each of those reads half of the library: too slow to mutate
                folders.remove("stdlib")
            for name in sorted(files):
                if name.endswith(".ein"):
                    shutil.copy(os.path.join(path, name), os.path.join(folder, f"{count:04}_{name}"))
                    count += 1
    return count


def deep_stack():
    """As `ein` itself does: the depth of an expression is bounded by the program's length alone."""
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (hard if hard != resource.RLIM_INFINITY else 1 << 30, hard))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="0: another one every time")
    parser.add_argument("--corpus")
    parser.add_argument("--found", default=".")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        seeds = os.path.join(scratch, "seeds")
        os.mkdir(seeds)
        if collect_seeds(seeds) == 0:
            sys.exit("no .ein files to start from")
        corpus = args.corpus or os.path.join(scratch, "corpus")
        os.makedirs(corpus, exist_ok=True)
        os.makedirs(args.found, exist_ok=True)
        run = subprocess.run(
            [args.binary, corpus, seeds, f"-max_total_time={args.seconds}", f"-seed={args.seed}", "-timeout=10",
             "-rss_limit_mb=2048", "-max_len=4096", f"-dict={ROOT}/fuzz/ein.dict", "-print_final_stats=1",
             f"-artifact_prefix={os.path.join(args.found, '')}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", preexec_fn=deep_stack)
    lines = run.stdout.splitlines()
    print("\n".join(lines[-60:] if run.returncode else [x for x in lines if x.startswith("stat::")]))
    if run.returncode != 0:
        sys.exit(f"{os.path.basename(args.binary)} found something: the input is in {args.found}")


if __name__ == "__main__":
    main()
