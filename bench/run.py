#!/usr/bin/env python3
"""The table of workloads: every one for us and for the peers, in one run on one machine.

    bench/run.py [EIN] [--rows ew,softmax] [--quick] [--threads 1,2] [--rounds 3] [--json FILE] [--svg FILE] [--before EIN]
                 [--memory]

Results are compared first: every peer must agree with us, within a tolerance that is printed. Then each is timed in turn,
round after round, and the figure is the median of all runs. Compilation comes before that, and its time is reported
separately. A peer that is not installed (`make bench-peers`) is left out; our column is always printed. `--quick` takes
small sizes and the peers that need nothing but NumPy and a C compiler, and compares gradients with differences.
`--before EIN` takes an earlier build of ours along as a peer: what a change costs or gains is then seen in one run.
The column `memory` is what a run of ours holds at most; with `--memory` the next one is the least that a peer holds.
`--precision bf16-mixed` rounds our operands of products, and PyTorch, the only peer then, runs under its autocast.
The status is 1 when results disagree, or a workload of ours does not run.
"""

import argparse
import contextlib
import dataclasses
import functools
import json
import math
import os
import pathlib
import selectors
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import calls
import cases
import peers_numpy
import report

HERE = pathlib.Path(__file__).resolve().parent
VENV = HERE / ".venv" / "bin" / "python"
MODULES = ("numpy", "c", "torch", "jax", "numba", "warp")
DIFFERENCES = 2e-5  # how far a gradient may be from differences, f32 or not
LEAST, ROUND_SECONDS = 1, 0.5  # runs of one implementation in one round


PRECISION = "EIN_BENCH_PRECISION"  # what peers_torch.py goes by
LOOSER = 100  # how much larger tolerances are with it


def environment(threads):
    """One thread count for everybody."""
    cpus = sorted(os.sched_getaffinity(0))
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**os.environ, **{n: str(threads) for n in names}}, set(cpus[-threads:])


class Failure(Exception):
    pass


class Peer:
    """A worker process with one module of peers, for timing or, with `preload`, for its memory."""

    def __init__(self, module, threads, limit, python, preload=None):
        self.limit = limit
        env, cpus = environment(threads)
        if preload:
            env["LD_PRELOAD"] = str(preload)
        self.process = subprocess.Popen(
            [python, "-B", HERE / "worker.py", module, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=env,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        os.set_blocking(self.process.stderr.fileno(), False)
        self.kinds = self.answer()["ready"]

    def answer(self):
        """The next line, if it comes in time; otherwise the process is ended."""
        with selectors.DefaultSelector() as s:
            s.register(self.process.stdout, selectors.EVENT_READ)
            s.register(self.process.stderr, selectors.EVENT_READ)
            end = time.monotonic() + self.limit
            while True:
                ready = [k.fileobj for k, _ in s.select(max(0, end - time.monotonic()))]
                if self.process.stdout in ready:
                    break
                if self.process.stderr in ready and self.process.stderr.read() == "":
                    s.unregister(self.process.stderr)
                if time.monotonic() >= end:
                    self.close()
                    raise Failure("too slow")
        line = self.process.stdout.readline()
        if not line:
            self.close()
            raise Failure("not installed")
        return json.loads(line)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.answer()
        for problem in ("missing", "failed"):
            if problem in answer:
                raise Failure(answer[problem])
        return answer

    def open(self, kind, case, inputs, folder, quick):
        files = {o: folder / f"{kind}.{o}.npy" for o in case.outputs}
        answer = self.ask(do="open", kind=kind, case=case.name, inputs={n: str(f) for n, f in inputs.items()},
                          outputs=[str(f) for f in files.values()], quick=quick)
        return answer["first"], {o: numpy.load(f) for o, f in files.items()}

    def time(self, kind, repeat):
        return self.ask(do="time", kind=kind, repeat=repeat)["runs"]

    def weigh(self, kind):
        return self.ask(do="weigh", kind=kind)["memory"]

    def close(self):
        self.process.kill()
        self.process.wait()


class Ours:
    def __init__(self, ein, threads, limit, profile):
        self.ein, self.limit, self.profile = ein, limit, profile
        self.env, self.cpus = environment(threads)
        help_text = subprocess.run([ein, "bench", "--help"], capture_output=True, text=True, check=True).stdout
        self.options = ["--threads", str(threads)] if "--threads" in help_text else []
        if os.environ.get(PRECISION):
            self.options += ["--precision", os.environ[PRECISION]]
        self.note = "" if threads == 1 or self.options else "this build of ours has one thread"

    def bench(self, program, *options):
        command = [self.ein, "bench", program, "--format", "json", *self.options, *options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.limit, env=self.env,
                                  preexec_fn=lambda: os.sched_setaffinity(0, self.cpus))
        except subprocess.TimeoutExpired as e:
            raise Failure("too slow") from e
        if done.returncode != 0:
            raise Failure((done.stderr.strip().splitlines() or ["status " + str(done.returncode)])[0])
        return json.loads(done.stdout)

    def machine(self):
        return self.bench(HERE / "programs" / "gemm.ein", "--repeat", "1")["machine"]

    def open(self, case, inputs, given, folder, kind="ours"):
        self.program = HERE / "programs" / f"{case.program}.ein"
        self.inputs = []
        for name, array in given.items():
            if array.ndim:
                self.inputs += ["--in", f"{name}={inputs[name]}"]
            else:
                self.inputs += ["--set", f"{name}={array.item()!r}"]
        self.show = ["--show", ",".join(case.outputs)]
        files = {o: folder / f"{kind}.{o}.npy" for o in case.outputs}
        outs = [a for o, f in files.items() for a in ("--out", f"{o}={f}")]
        peaks = [] if self.profile else ["--no-peaks"]
        answer = self.bench(self.program, *self.inputs, *outs, "--repeat", "1", *peaks)
        self.kernels = answer["kernels"]
        values = {o: numpy.load(f) for o, f in files.items()}
        return answer["compile"]["total"], values, answer["runs"][0], answer.get("memory", math.nan)

    def time(self, repeat):
        return self.bench(self.program, *self.inputs, *self.show, "--repeat", str(repeat), "--no-peaks")["runs"]


@dataclasses.dataclass
class Entry:
    """One implementation of one case at one thread count."""

    kind: str
    runs: list = dataclasses.field(default_factory=list)
    compile: float = math.nan
    problem: str = ""
    deviation: float = math.nan
    memory: float = math.nan  # bytes held at most during a call, its inputs included

    @property
    def seconds(self):
        return statistics.median(self.runs) if self.runs else math.nan


def deviation(ours, theirs):
    """The largest difference over the largest magnitude, over all outputs, and where that was."""
    worst = (0.0, "")
    for name, mine in ours.items():
        other = theirs[name]
        if mine.shape != other.shape:
            return math.inf, f"{name}: shapes {mine.shape} and {other.shape}"
        a, b = mine.astype(float), other.astype(float)
        if not (numpy.isfinite(a).all() and numpy.isfinite(b).all()):
            return math.inf, f"{name}: not finite"
        gap = numpy.abs(a - b).max(initial=0.0) / max(numpy.abs(b).max(initial=0.0), 1e-30)
        worst = max(worst, (float(gap), name))
    return worst


def against_differences(case, given, outputs):
    """Gradients against central differences of the NumPy peer's loss in f64, along a random direction for each input."""
    exact = {n: a.astype(float) if a.dtype.kind == "f" else a for n, a in given.items()}
    loss = peers_numpy.LOSS.get(case.name) or peers_numpy.LOSS[case.row]
    exact = {n: a for n, a in exact.items() if n[:2] not in ("m_", "v_") and n != "step"}
    random = numpy.random.default_rng(7)
    worst = (0.0, "")

    def along(moves, h):
        return float(loss(**{n: a + h * moves[n] if n in moves else a for n, a in exact.items()}))

    if case.row == "hvp":  # vᵀ H v is the second derivative along v
        pairs = dict(zip(("W1", "b1", "W2", "b2", "W3", "b3"), ("v1", "c1", "v2", "c2", "v3", "c3")))
        exact = {n: a for n, a in exact.items() if n not in pairs.values()}
        moves = {n: given[v].astype(float) for n, v in pairs.items()}
        h = 1e-4
        expected = (along(moves, h) - 2 * along(moves, 0) + along(moves, -h)) / h**2
        got = sum(float((outputs["h" + n].astype(float) * v).sum()) for n, v in moves.items())
        return abs(got - expected) / abs(expected), "vᵀHv"
    for name, read in case.gradients.items():
        gradient = numpy.asarray(read(outputs, given), float)
        move = random.standard_normal(gradient.shape)
        h = 1e-6
        expected = (along({name: move}, h) - along({name: move}, -h)) / (2 * h)
        got = float((gradient * move).sum())
        size = float(numpy.sqrt(((gradient * move) ** 2).sum()))
        worst = max(worst, (abs(got - expected) / max(size, 1e-30), "gradient by " + name))
    return worst


def repeat_for(seconds, quick):
    if quick:
        return 1
    return max(LEAST, min(200, int(ROUND_SECONDS / max(seconds, 1e-6))))


def weigh(case, inputs, folder, entries, modules, preload, options):
    """Memory of the peers that ran, each in a process of its own: what an earlier case left behind is not counted."""
    for module in modules:
        peer = Peer(module, 1, options.limit, options.python, preload)
        for entry in entries:
            if entry.kind in peer.kinds and entry.runs:
                with contextlib.suppress(Failure, BrokenPipeError):
                    peer.open(entry.kind, case, inputs, folder, options.quick)
                    entry.memory = peer.weigh(entry.kind)
        peer.close()


def run_case(case, ours, before, peers, options, folder):
    given = {n: numpy.asarray(a) for n, a in case.make(options.quick).items()}
    inputs = {}
    for name, array in given.items():
        inputs[name] = folder / f"{name}.npy"
        numpy.save(inputs[name], array)
    entries, results, active = [], {}, []
    for kind, build in (("ours", ours), ("before", before)):
        if build:
            entries.append(Entry(kind))
            try:
                entries[-1].compile, results[kind], first, entries[-1].memory = build.open(case, inputs, given, folder, kind)
                active.append((entries[-1], build.time, repeat_for(first, options.quick)))
            except Failure as e:
                entries[-1].problem = str(e)
    for module, peer in peers.items():
        for kind in peer.kinds:
            entry = Entry(kind)
            try:
                peer.limit = options.limit
                first, results[kind] = peer.open(kind, case, inputs, folder, options.quick)
            except (Failure, BrokenPipeError) as e:
                if str(e) != "no such workload":
                    entry.problem = str(e) or "ended"
                    entries.append(entry)
                continue
            entries.append(entry)
            once = peer.time(kind, 1)[0]  # the second call: nothing is compiled any more
            entry.compile = max(0.0, first - once)

            active.append((entry, functools.partial(peer.time, kind), repeat_for(once, options.quick)))
    for _ in range(options.rounds):
        for entry, measure, repeat in active:
            try:
                entry.runs += measure(repeat)
            except (Failure, BrokenPipeError) as e:
                entry.problem = str(e)
    for peer in peers.values():
        with contextlib.suppress(Failure, BrokenPipeError):
            peer.ask(do="close")
    if options.memory:
        weigh(case, inputs, folder, entries, list(peers), options.memory, options)
    trouble = []
    if entries[0].problem:
        trouble.append(f"ours: {entries[0].problem}")
    else:
        for entry in entries[1:]:
            if entry.kind not in results:
                continue
            entry.deviation, where = deviation(results["ours"], results[entry.kind])
            if not entry.deviation <= case.tolerance:
                trouble.append(f"{entry.kind} differs by {entry.deviation:.1e} in {where} (tolerance {case.tolerance:.0e})")
        if options.quick and (case.gradients or case.row == "hvp"):
            gap, where = against_differences(case, given, results["ours"])
            entries[0].deviation = gap
            if not gap <= DIFFERENCES:
                trouble.append(f"differences of the NumPy peer give another {where} ({gap:.1e})")
    return entries, trouble


def start_row(ein, repeat):
    """Wall time of the smallest program: with an empty cache folder each time, and with one that is kept. Then what a call
    costs."""
    program = HERE / "programs" / "hello.ein"

    def once(cache):
        begin = time.perf_counter()
        subprocess.run([ein, "run", program], check=True, capture_output=True, env={**os.environ, "XDG_CACHE_HOME": cache})
        return time.perf_counter() - begin

    with tempfile.TemporaryDirectory() as kept:
        once(kept)
        warm = statistics.median(once(kept) for _ in range(repeat))
    cold = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as fresh:
            cold.append(once(fresh))
    return {"hello cold": statistics.median(cold), "hello warm": warm, **calls.figures(ein)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ein", nargs="?", default=str(HERE.parent / "build" / "ein"))
    parser.add_argument("--rows", help="rows (ew) or cases (ew.forward), with commas between; all of them by default")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round, NumPy and C only: a smoke test")
    parser.add_argument("--threads", default=None, help="thread counts, 1,2 by default")
    parser.add_argument("--rounds", type=int, default=None, help="rounds of interleaved runs")
    parser.add_argument("--limit", type=float, default=120, help="seconds that one answer may take")
    parser.add_argument("--peers", default=None, help="modules of peers: " + ",".join(MODULES))
    parser.add_argument("--before", help="an earlier build of ours, to compare with")
    parser.add_argument("--precision", choices=("f32", "bf16-mixed", "f16-mixed"), default="f32")
    parser.add_argument("--python", default=str(VENV if VENV.exists() else sys.executable), help="the peers' Python")
    parser.add_argument("--memory", action="store_true", help="also how much memory the peers hold, in processes of their own")
    parser.add_argument("--profile", action="store_true", help="our five slowest families below each case")
    parser.add_argument("--json", help="write everything that was measured to this file")
    parser.add_argument("--svg", help="draw the ratios into this file")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    modules = options.peers.split(",") if options.peers is not None else (["numpy", "c"] if options.quick else MODULES)
    if options.precision != "f32":
        os.environ[PRECISION] = options.precision
        modules = [m for m in modules if m == "torch"]
    counts = [int(t) for t in (options.threads or ("1" if options.quick else "1,2")).split(",")]
    known = {c.row for c in cases.CASES} | {c.name for c in cases.CASES} | {"start"}
    wanted = options.rows.split(",") if options.rows else sorted(known)
    for name in wanted:
        if name not in known:
            parser.error(f"no row `{name}`; rows: {', '.join(sorted({c.row for c in cases.CASES}))}, start")
    for name in modules:
        if name not in MODULES + ("",):
            parser.error(f"no peers `{name}`; there are {', '.join(MODULES)}")

    kept = contextlib.ExitStack()
    if options.memory:
        options.memory = pathlib.Path(kept.enter_context(tempfile.TemporaryDirectory())) / "held.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", options.memory, HERE / "c" / "held.c"], check=True)
    out = {"quick": options.quick, "threads": {}}
    status = 0
    for threads in counts:
        ours = Ours(options.ein, threads, options.limit, options.profile)
        before = Ours(options.before, threads, options.limit, False) if options.before else None
        machine = None if options.quick else ours.machine()
        peers = {}
        for module in filter(None, modules):
            try:
                peers[module] = Peer(module, threads, options.limit, options.python)
            except Failure as e:
                print(f"peer {module}: {e}", file=sys.stderr)
        table = report.Table(threads, machine, ours.note, options.quick)
        for case in cases.CASES:
            if case.row not in wanted and case.name not in wanted:
                continue
            if options.precision != "f32":
                case = dataclasses.replace(case, tolerance=LOOSER * case.tolerance)
            with tempfile.TemporaryDirectory() as folder:
                entries, trouble = run_case(case, ours, before, peers, options, pathlib.Path(folder))
            table.add(case, entries, trouble)
            if options.profile and not entries[0].problem:
                print(report.profile(ours.kernels), flush=True)
            status = 1 if trouble else status
            for module in list(peers):  # start those again that had to be ended
                if peers[module].process.poll() is not None:
                    try:
                        peers[module] = Peer(module, threads, options.limit, options.python)
                    except Failure:
                        del peers[module]
        for peer in peers.values():
            peer.close()
        out["threads"][threads] = table.json()
        print(table.summary())
    if "start" in wanted:
        out["start"] = start_row(options.ein, 3 if options.quick else 20)
        print(report.start_text(out["start"]))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(out, indent=1, allow_nan=False) + "\n")
    if options.svg:
        pathlib.Path(options.svg).write_text(report.svg(out))
    kept.close()
    return status


if __name__ == "__main__":
    sys.exit(main())
