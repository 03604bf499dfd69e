#!/usr/bin/env python3
"""How fast `ein check` is: lines per second of CPU time, for programs of several kinds and lengths.

    bench/check.py build/ein [--lines 10000,30000,100000] [--repeat 3] [--json FILE]

Each kind is one program of about that many lines. The growth is the time per line of the longest program over
that of the shortest: 1.0 is linear. The JSON report holds the same numbers.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile


def scalar_lets(lines):
    yield "let x0: f32;"
    for i in range(1, lines):
        yield f"let x{i} = x0 * {i % 17}.5 + {i % 5}.0;"


def chain(lines):
    """Every definition reads the one before it."""
    yield "let x0: f32;"
    for i in range(1, lines):
        yield f"let x{i} = x{i - 1} * 0.5 + {i % 5}.0;"


def forward_chain(lines):
    """Every definition reads the one after it, so all of them are open at once."""
    for i in range(lines - 1):
        yield f"let x{i} = x{i + 1} * 0.5 + {i % 5}.0;"
    yield f"let x{lines - 1}: f32;"


def indexed(lines):
    yield "let A: [f32; n, m];"
    yield "let v: [f32; m];"
    i = 0
    while i < lines - 2:
        yield f"let a{i}[i, j] = A[i, j] * v[j] + {i % 7}.0;"
        yield f"let s{i}[i] = sum[j](a{i}[i, j] * v[j]);"
        yield f"let m{i} = max[i](s{i}[i]);"
        i += 3


def functions(lines):
    yield "let A: [f32; n, m];"
    i = 0
    while i < lines - 1:
        yield f"fn scale{i}(x, by: f32) -> f32 {{"
        yield "  let twice = x * 2.0;"
        yield f"  twice + by * {i % 9}.0"
        yield "}"
        yield f"let y{i}[i, j] = scale{i}(A[i, j], 3.0);"
        i += 5


def clauses(lines):
    """One family with very many clauses."""
    for i in range(lines):
        yield f"let f[{i}] = {i % 13}.0;"


def mix(lines):
    """Layers, gates, recurrences, gradients and prints, each block with names of its own."""
    block = """\
// Layer {n}.
fn act{n}(x) {{
  if x > 0.0 {{ x }} else {{ x * 0.{d} }}
}}
let w{n}[i in 0..8, j in 0..8] = (i as f32) * 0.1 + (j as f32) * 0.{d};
let z{n}[b, i] = sum[j](x[b, j] * w{n}[i, j]);
let h{n}[b, i] = act{n}(z{n}[b, i]);
let g{n}[b, i] = h{n}[b, i] where h{n}[b, i] < 2.0;
let p{n}[b, c] = softmax[c](g{n}[b, c]);

/// A running mean.
let r{n}[0] = 0.0;
let r{n}[t in 1..8] = 0.9 * r{n}[t - 1] + 0.1 * h{n}[0, t];
let loss{n} = sum[b, i](p{n}[b, i] * z{n}[b, i]) + r{n}[7];
let dw{n} = @loss{n} / @w{n};
let best{n} = max[i, j](dw{n}[i, j]);
print("loss {n}: {{loss{n}}} {{best{n}:.3f}}");
assert(extent(w{n}, 0) == 8, "eight rows");

"""
    made = ["fn softmax[j](x: [f32; ..left, j, ..right]) -> [f32; ..left, j, ..right] {",
            "  let e[..left, j, ..right] = exp(x[..left, j, ..right]);",
            "  let total[..left, ..right] = sum[j](e[..left, j, ..right]);",
            "  let out[..left, j, ..right] = e[..left, j, ..right] / total[..left, ..right];",
            "  out", "}", "let x[b in 0..4, i in 0..8] = (b as f32) + (i as f32) * 0.5;"]
    yield from made
    count, n = len(made), 0
    while count < lines:
        text = block.format(n=n, d=1 + n % 8).splitlines()
        yield from text
        count += len(text)
        n += 1


KINDS = {
    "scalar lets": scalar_lets,
    "chain": chain,
    "forward chain": forward_chain,
    "indexed lets": indexed,
    "functions": functions,
    "clauses": clauses,
    "mix": mix,
}


def seconds(ein, path, repeat):
    """CPU seconds of the best of several runs: other work on the machine only ever adds time."""
    best = None
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run([ein, "check", path], capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if run.returncode != 0:
            sys.exit(f"{path}: exit {run.returncode}\n{run.stderr[:2000]}")
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best or cpu, cpu)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ein")
    parser.add_argument("--lines", default="10000,30000,100000")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("-k", default="", help="only kinds whose name contains this")
    args = parser.parse_args()
    sizes = [int(n) for n in args.lines.split(",")]
    report = []
    print(f"{'kind':15}" + "".join(f"{n:>12,}" for n in sizes) + "   lines/s, growth")
    for kind, make in KINDS.items():
        if args.k not in kind:
            continue
        rates = []
        for size in sizes:
            text = list(make(size))
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "program.ein")
                with open(path, "w") as out:
                    out.write("\n".join(text) + "\n")
                took = seconds(args.ein, path, args.repeat)
            rates.append(len(text) / took)
            report.append({"kind": kind, "lines": len(text), "seconds": round(took, 4), "lines_per_s": round(rates[-1])})
        print(f"{kind:15}" + "".join(f"{r:12,.0f}" for r in rates) + f"   {rates[0] / rates[-1]:.2f}", flush=True)
    if args.json:
        with open(args.json, "w") as out:
            json.dump(report, out, indent=1)


if __name__ == "__main__":
    main()
