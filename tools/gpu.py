"""What tools/gpu.sh does. Usage: gpu.py ROOT EIN [--quick] [--device gpu|emulated]

Four parts, each with a line of its own at the end:
  tests    every file test that native code passes, on the device
  bits     what the device computes for the programs of bench/cases.py, small ones, equals the emulator's bits
  again    a program with sums, 100 times (10 with --quick): the same bits each time
  times    the programs of bench/cases.py: whole runs, with the copies of inputs and results
`--device emulated` tries the script itself where there is no GPU; then the second part compares the emulator with the processor's values."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy

TIMES = ("ew", "softmax", "layernorm", "gemm", "attention", "conv", "embed", "heat", "ensemble", "lstm")
TIMEOUT = 600


def run(*command, **environment):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT,
                          env={**os.environ, "EINLANG_CACHE": "off", **environment})


def same_bits(a, b):
    """Equal, bit by bit; where both are NaN it does not matter which one."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "f":
        nan = numpy.isnan(a)
        if not (nan == numpy.isnan(b)).all():
            return False
        a, b = a[~nan], b[~nan]
    return a.tobytes() == b.tobytes()


def arguments(case, quick, folder):
    """--in and --set for a case, whose arrays are written to the folder."""
    out = []
    for name, value in case.make(quick).items():
        value = numpy.asarray(value)
        if value.ndim == 0:
            out += ["--set", f"{name}={value}"]
        else:
            path = folder / f"{name}.npy"
            numpy.save(path, value)
            out += ["--in", f"{name}={path}"]
    return out


def outputs(ein, program, case, given, device, folder):
    out = []
    for name in case.outputs:
        out += ["--out", f"{name}={folder / (device + '_' + name + '.npy')}"]
    done = run(ein, "run", program, "--device", device, *given, *out)
    if done.returncode != 0:
        return None, done.stderr.strip()
    return {name: numpy.load(folder / f"{device}_{name}.npy") for name in case.outputs}, ""


def check_tests(root, ein, device, quick):
    sample = ["--sample", "40"] if quick else []
    done = run(sys.executable, "-B", root / "tests/run.py", ein, "--only", device, *sample)
    print(done.stdout[-4000:])
    return done.returncode == 0


def check_bits(root, ein, device, cases, quick):
    failed = 0
    for case in cases:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            given = arguments(case, True, folder)
            program = root / "bench/programs" / f"{case.program}.ein"
            got, why = outputs(ein, program, case, given, device, folder)
            other = "emulated" if device == "gpu" else "cpu"
            want, why_not = outputs(ein, program, case, given, other, folder)
        if got is None or want is None:
            problem = why or why_not
        elif device == "gpu":
            wrong = [n for n in case.outputs if not same_bits(got[n], want[n])]
            problem = f"other bits in {', '.join(wrong)}" if wrong else ""
        else:
            wrong = [n for n in case.outputs
                     if not numpy.allclose(got[n], want[n], rtol=0, equal_nan=True,
                                           atol=case.tolerance * max(1e-30, numpy.abs(want[n]).max(initial=0)))]
            problem = f"other values in {', '.join(wrong)}" if wrong else ""
        failed += bool(problem)
        print(f"{case.name:28} {problem or 'equal'}")
    return failed == 0


def check_again(ein, device, times):
    code = ("let x[i in 0..300, j in 0..700] = uniform(1, i, j); let m[i] = max[j](x[i, j]);"
            "let e[i, j] = exp(x[i, j] - m[i]); let t[i] = sum[j](e[i, j]); let s = sum[i, j](e[i, j] / t[i] * x[i, j]);")
    first = None
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(times):
            path = pathlib.Path(folder) / "s.npy"
            done = run(ein, "run", "-c", code, "--device", device, "--out", f"s={path}", "--out", f"t={path.parent / 't.npy'}")
            if done.returncode != 0:
                print(done.stderr)
                return False
            now = path.read_bytes() + (path.parent / "t.npy").read_bytes()
            first = first or now
            if first != now:
                return False
    return True


def milliseconds(ein, program, case, quick, device):
    with tempfile.TemporaryDirectory() as scratch:
        given = arguments(case, quick, pathlib.Path(scratch))
        done = run(ein, "bench", program, "--device", device, "--no-peaks", "--format", "json", "--show",
                   ",".join(case.outputs), *given)
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr else "failed"
    return 1e3 * sorted(json.loads(done.stdout)["runs"])[0], ""


def print_times(root, ein, device, cases, quick):
    print(f"{'case':28} {'ms':>10}   whole run, copies from and to the host included")
    for case in cases:
        if case.row not in TIMES:
            continue
        program = root / "bench/programs" / f"{case.program}.ein"
        took, why = milliseconds(ein, program, case, quick, device)
        print(f"{case.name:28} {'-' if took is None else format(took, '10.3f'):>10} {why}")
    return True


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("ein", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device", choices=["gpu", "emulated"], default="gpu")
    options = parser.parse_args(argv)
    root, ein = options.root.resolve(), options.ein.resolve()
    if options.device == "gpu":
        done = run(ein, "run", "-c", "print(1);", "--device", "gpu")
        if done.returncode != 0:
            print(done.stderr)
            return 1
    sys.path.insert(0, str(root / "bench"))
    import cases
    parts = {
        "tests": lambda: check_tests(root, ein, options.device, options.quick),
        "bits": lambda: check_bits(root, ein, options.device, cases.CASES, options.quick),
        "again": lambda: check_again(ein, options.device, 10 if options.quick else 100),
        "times": lambda: print_times(root, ein, options.device, cases.CASES, options.quick),
    }
    results = {}
    for name, part in parts.items():
        print(f"== {name}", flush=True)
        results[name] = part()
    print("== " + ", ".join(f"{name}: {'fine' if fine else 'WRONG'}" for name, fine in results.items()))
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
