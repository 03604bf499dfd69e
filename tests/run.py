"""Runs the file tests: every .ein below tests/{run,errors,grad,cli,stdlib}, by every route, against what
the file itself expects. Usage: run.py EIN [-k FILTER] [-j JOBS] [--cpu NAME] [--update] [--only ROUTE] [--sample N] [PATH...]

What a file may say (a file that says nothing of this fails):
  //= out: TEXT        what the program prints; following lines that begin with //= continue it
  //~ E0301 TEXT       this line has that diagnostic, and TEXT stands in one of its messages;
  //~^ E0301 TEXT      the line above has it (one ^ per line); warnings likewise
  //~@lib/a.ein:3 E0301 TEXT   that line of another file has it
  //! fails: E0803 TEXT   the run ends with status 3 and that run-time error, which contains TEXT
  //! grad: dW = loss / W   the value dW is the derivative of loss by W: `ein gradcheck` says so
  //! grad: loss wrt W, b   the derivatives of loss by W and b agree with differences
and how it is run:
  //! in NAME = [[1.0, 2.0]] : f64        an input, written as .npy; `: f64[0, 3]` gives the shape
  //! args: --set n=3 --show y            more arguments of `ein run`
  //! exit: N                             the exit status, if it is not the obvious one
  //! tolerance: 1e-6                     numbers in the output need only be that close
  //! routes: ref O0 O3 printed           the default; `native` is another name for O3
  //! layout: as written                  the file is not in the formatter's style, on purpose
  //! falls back: TEXT                    native code is not available, for that reason
A file in a folder `lib` is a module that tests import, not a test.
The route `printed` runs what `ein grad --all FILE` prints; `forward` takes every derivative in forward
mode and is a default below tests/grad. All routes have one expectation. `--only emulated` runs every
program as a GPU would compute it, `--only gpu` on one."""

import argparse
import concurrent.futures
import dataclasses
import difflib
import hashlib
import json
import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
os.environ.setdefault("EINLANG_CACHE", "off")  # not the cache of whoever runs this
FOLDERS = ("run", "errors", "grad", "cli", "stdlib")
ROUTES = {
    "ref": ["--backend", "ref"],
    "O0": ["-O0", "--cpu", "sse2", "--check-bounds"],  # and so the poorest processor runs everything too
    "O3": ["-O3"],
    "native": ["-O3"],
    "printed": ["--backend", "ref"],
    "forward": ["--backend", "ref", "--grad-mode", "forward"],
    "emulated": ["--device", "emulated"],
    "gpu": ["--device", "gpu"],
}
DEFAULT_ROUTES = ["ref", "O0", "O3", "printed"]
# Derivatives from the other side, and sums of a device, are the same numbers, added up in another order.
OTHER_ORDER = {"forward": 1e-5, "emulated": 1e-5, "gpu": 1e-5}
# What only the processor does: a device refuses it.
HOST_ONLY = {"--check-overflow", "--trap", "--backend", "--device"}
DTYPES = {"bool": ("|b1", "?"), "i8": ("|i1", "b"), "u8": ("|u1", "B"), "i16": ("<i2", "h"),
          "i32": ("<i4", "i"), "i64": ("<i8", "q"), "f16": ("<f2", "e"), "f32": ("<f4", "f"),
          "f64": ("<f8", "d")}
NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)(?![\w.])")
TIMEOUT = 60


@dataclasses.dataclass
class Test:
    path: pathlib.Path
    out: list = None                                   # lines, None without `//= out:`
    diagnostics: list = dataclasses.field(default_factory=list)  # (line, code, fragment)
    fails: str = None
    grads: list = dataclasses.field(default_factory=list)        # (gradient, of, wrt)
    inputs: dict = dataclasses.field(default_factory=dict)       # name -> (dtype, shape, cells)
    args: list = dataclasses.field(default_factory=list)
    exit: int = None
    tolerance: float = None
    routes: list = None
    falls_back: str = None

    def expects_something(self):
        return (self.out is not None or self.diagnostics or self.fails is not None or self.grads
                or self.exit is not None)

    def has_errors(self):
        return any(code.startswith("E") for _, code, _ in self.diagnostics)

    def status(self):
        if self.exit is not None:
            return self.exit
        return 1 if self.has_errors() else 3 if self.fails is not None else 0


class BadTest(Exception):
    pass


# ---- reading a test ------------------------------------------------------------------------------

def read_test(path):
    test = Test(path)
    continues = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("//= out:"):
            test.out = test.out or []
            rest = stripped[len("//= out:"):].strip()
            if rest:
                test.out.append(rest)
            continues = True
        elif stripped.startswith("//=") and continues:
            test.out.append(line.lstrip()[3:].removeprefix(" "))
        elif stripped.startswith("//="):
            raise BadTest(f"line {number}: `//=` continues no block")
        else:
            continues = False
        for mark in re.finditer(r"//~(?:@(\S+):(\d+)|(\^*))\s*(\S*)\s*(.*?)\s*(?=//~|$)", line):
            file, at, up, code, fragment = mark.groups()
            if not re.fullmatch(r"[EW]\d{4}", code) or not fragment:
                raise BadTest(f"line {number}: `//~` needs a code and a part of the message")
            place = (str(path.parent / file), int(at)) if file else (str(path), number - len(up))
            test.diagnostics.append((place, code, fragment))
        if stripped.startswith("//!"):
            read_directive(test, stripped[3:].strip(), number)
    if test.routes is None:
        test.routes = DEFAULT_ROUTES + (["forward"] if HERE / "grad" in path.parents else [])
    return test


def read_directive(test, text, number):
    if text == "layout: as written":  # for tests/meta/formatted.py
        return
    if m := re.fullmatch(r"in ([\w.]+) = (.*) : (\w+)(?:\[([\d, ]*)\])?", text):
        name, cells, dtype, shape = m.groups()
        if dtype not in DTYPES:
            raise BadTest(f"line {number}: unknown dtype {dtype}")
        cells = json.loads(re.sub(r"\binf\b", "Infinity", re.sub(r"\bnan\b", "NaN", cells)))
        given = shape is not None
        shape = [int(n) for n in shape.split(",") if n.strip()] if given else shape_of(cells)
        test.inputs[name] = (dtype, shape, flatten(cells))
    elif text.startswith("args:"):
        test.args += shlex.split(text[5:])
    elif text.startswith("exit:"):
        test.exit = int(text[5:])
    elif text.startswith("tolerance:"):
        test.tolerance = float(text[10:])
    elif text.startswith("routes:"):
        test.routes = text[7:].split()
        if not test.routes or any(r not in ROUTES for r in test.routes):
            raise BadTest(f"line {number}: routes are {', '.join(ROUTES)}")
    elif text.startswith("fails:"):
        test.fails = text[6:].strip()
    elif text.startswith("falls back:"):
        test.falls_back = text[11:].strip()
    elif m := re.fullmatch(r"grad: (\w+) = (\w+) / (\w+)", text):
        test.grads.append(m.groups())
    elif m := re.fullmatch(r"grad: (\w+) wrt (\w+(?:, \w+)*)", text):
        test.grads.append((None, m[1], m[2].replace(" ", "")))
    else:
        raise BadTest(f"line {number}: unknown directive `//! {text}`")


def shape_of(cells):
    shape = []
    while isinstance(cells, list):
        shape.append(len(cells))
        cells = cells[0] if cells else None
    return shape


def flatten(cells):
    return [x for c in cells for x in flatten(c)] if isinstance(cells, list) else [cells]


def write_npy(path, dtype, shape, cells):
    descr, code = DTYPES[dtype]
    header = str({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = struct.pack(f"<{len(cells)}{code}", *cells)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


# ---- running one ---------------------------------------------------------------------------------

@dataclasses.dataclass
class Result:
    status: int
    out: list            # lines
    diagnostics: list    # parsed JSON objects
    other: str           # the rest of standard error


def execute(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return Result(None, [], [], f"no end after {TIMEOUT} s")
    diagnostics, other = [], []
    for line in done.stderr.splitlines():
        if line.startswith("{"):
            diagnostics.append(json.loads(line))
        else:
            other.append(line)
    return Result(done.returncode, done.stdout.splitlines(), diagnostics, "\n".join(other))


def place_of(diagnostic):
    return next(((l.get("file", diagnostic["file"]), l["line"]) for l in diagnostic["labels"] if l["primary"]), None)


def texts_of(d):
    return [d["message"], *(l["text"] for l in d["labels"]), *d["notes"], d["help"] or "",
            *(f["title"] for f in d["fixes"])]


def check_diagnostics(test, found):
    problems, left = [], list(found)
    for place, code, fragment in test.diagnostics:
        match = next((d for d in left if d["code"] == code and place_of(d) == place
                      and any(fragment in t for t in texts_of(d))), None)
        if match:
            left.remove(match)
        else:
            problems.append(f"expected {code} at {place[0]}:{place[1]} with `{fragment}`")
    return problems + [f"unexpected:\n{d['rendered']}" for d in left]


def same_numbers(want, got, tolerance):
    """Lines equal, but for numbers that may differ by the tolerance (absolute and relative)."""
    if NUMBER.sub("#", want) != NUMBER.sub("#", got):
        return False
    for a, b in zip(map(float, NUMBER.findall(want)), map(float, NUMBER.findall(got))):
        if a != b and not (a != a and b != b) and not abs(a - b) <= tolerance * max(1.0, abs(a)):
            return False
    return True


def check_out(test, route, got):
    want, tolerance = test.out or [], test.tolerance
    if route in OTHER_ORDER:
        tolerance = max(tolerance or 0, OTHER_ORDER[route])
    equal = want == got
    if not equal and tolerance is not None and len(want) == len(got):
        equal = all(same_numbers(w, g, tolerance) for w, g in zip(want, got))
    if equal:
        return []
    return ["\n".join(difflib.unified_diff(want, got, "expected", "printed", lineterm=""))]


def check_native(test, route, result):
    fell = result.other.startswith("warning: ran on the slow reference evaluator")
    if route not in ("O0", "O3", "native", "emulated", "gpu"):
        return [], result.other
    first, _, rest = result.other.partition("\n")
    if not fell:
        return (["expected to fall back to the reference"] if test.falls_back else []), result.other
    if test.falls_back and test.falls_back in first:
        return [], rest
    return [first], rest


def run_route(ein, test, route, inputs, scratch):
    """What is wrong with one route, and the printed lines."""
    program, problems = str(test.path), []
    if route == "printed":
        printed = execute([ein, "grad", program, "--all", "--error-format", "json", *inputs])
        problems += check_diagnostics(test, printed.diagnostics)
        if printed.status != 0 or printed.other:
            return problems + [f"ein grad: status {printed.status}\n{printed.other}"], []
        program = str(scratch / "printed.ein")
        pathlib.Path(program).write_text("\n".join(printed.out) + "\n")
    result = execute([ein, "run", program, "--error-format", "json", *ROUTES[route], *inputs,
                      *test.args])
    found = [d for d in result.diagnostics if not d["code"].startswith("E08")]
    failures = [d for d in result.diagnostics if d["code"].startswith("E08")]
    if route == "printed":  # warnings were checked above
        problems += [d["rendered"] for d in found if d["severity"] == "error"]
    else:
        problems += check_diagnostics(test, found)
    complaints, other = check_native(test, route, result)
    problems += complaints
    if result.status != test.status():
        problems.append(f"exit status {result.status}, expected {test.status()}")
    if test.fails is not None:
        code, _, fragment = test.fails.partition(" ")
        if not any(d["code"] == code and fragment in d["message"] for d in failures):
            got = "".join(d["rendered"] for d in failures) or other
            problems.append(f"expected a run-time error `{test.fails}`, got `{got}`")
    elif failures:
        problems += [d["rendered"] for d in failures]
    elif other and test.status() == 0:
        problems.append(other)
    return problems + check_out(test, route, result.out), result.out


def check_gradients(ein, test, inputs):
    """`ein gradcheck` of every derivative that the test names: those of one value together."""
    together = {}
    for gradient, of, wrt in test.grads:
        together.setdefault((of, gradient is not None), []).append((gradient, wrt))
    problems = []
    for (of, claimed), pairs in together.items():
        wrt = ",".join(w for _, w in pairs)
        claim = ["--value", ",".join(g for g, _ in pairs)] if claimed else []
        done = execute([ein, "gradcheck", str(test.path), "--of", of, "--wrt", wrt, *claim, *inputs,
                        "--error-format", "json"])
        compared = sum(" — agrees (" in line for line in done.out) == wrt.count(",") + 1
        if done.status != 0 or not compared:
            problems.append(f"gradcheck --of {of} --wrt {wrt}: status {done.status}\n"
                            + "\n".join(done.out) + done.other)
    return problems


def run_test(ein, path, only=None):
    """[(route, problem)] and the lines of the first route (for --update)."""
    try:
        test = read_test(path)
        if only:
            test.routes, derived = [only], [g for g, _, _ in test.grads if g]
            test.grads = []
            if derived and test.out is None:  # what `gradcheck` would look at
                return compare_devices(ein, test, derived, only), None
        if not test.expects_something():
            return [("", "the file expects nothing")], None
        with tempfile.TemporaryDirectory() as scratch:
            return run_routes(ein, test, pathlib.Path(scratch))
    except (BadTest, ValueError, struct.error) as e:
        return [("", str(e))], None


def compare_devices(ein, test, names, device):
    """What differs between the derivatives that the processor computes and those of the device."""
    with tempfile.TemporaryDirectory() as scratch:
        inputs = write_inputs(test, pathlib.Path(scratch))
        show = ["--show", ",".join(names), "--error-format", "json", *inputs, *test.args]
        here = execute([ein, "run", str(test.path), *show])
        there = execute([ein, "run", str(test.path), *ROUTES[device], *show])
    if here.status != there.status or here.status != test.status():
        return [(device, f"exit status {there.status}, on the processor {here.status}\n{there.other}")]
    test.out = here.out
    return [(device, p) for p in check_out(test, device, there.out)]


def write_inputs(test, scratch):
    inputs = []
    for name, given in test.inputs.items():
        write_npy(scratch / f"{name}.npy", *given)
        inputs += ["--in", f"{name}={scratch / name}.npy"]
    return inputs


def run_routes(ein, test, scratch):
    inputs = write_inputs(test, scratch)
    if test.has_errors():
        result = execute([ein, "check", str(test.path), "--error-format", "json", *inputs])
        problems = check_diagnostics(test, result.diagnostics)
        if result.status != test.status() or result.other:
            problems.append(f"exit status {result.status}, not {test.status()}\n{result.other}")
        return [("check", p) for p in problems], None
    problems, first = [], None
    for route in test.routes:
        found, lines = run_route(ein, test, route, inputs, scratch)
        problems += [(route, p) for p in found]
        first = lines if first is None else first
        if first != lines and test.tolerance is None and route != "forward":
            problems.append((route, f"prints other than {test.routes[0]}"))
    if test.grads:
        problems += [("gradient", p) for p in check_gradients(ein, test, inputs)]
    return problems, first


# ---- all of them ---------------------------------------------------------------------------------

def update(path, lines):
    """Replaces the `//= out:` blocks by one with what was printed. Never touches `//~`."""
    kept, at = [], None
    for line in path.read_text().splitlines():
        if line.strip().startswith("//="):
            at = len(kept) if at is None else at
        else:
            kept.append(line)
    if at is None:
        return False
    block = ["//= out:"] + ["//= " + l if l else "//=" for l in lines]
    if len(lines) == 1:
        block = ["//= out: " + lines[0]]
    text = "\n".join(kept[:at] + block + kept[at:]) + "\n"
    changed = text != path.read_text()
    path.write_text(text)
    return changed


def runs_natively(path):
    """Whether a test says what native code prints, so that a device must print it too."""
    try:
        test = read_test(path)
    except (BadTest, ValueError):
        return True  # to be reported
    native = {"O0", "O3", "native"} & set(test.routes)
    if test.out is None and test.fails is None and not any(g for g, _, _ in test.grads):
        return False
    return native and not test.has_errors() and not HOST_ONLY & set(test.args)


def in_sample(path, sample):
    """Every n-th program, the same ones each time, whatever programs there are besides."""
    name = os.path.relpath(path.resolve(), HERE).encode()  # of programs elsewhere, too
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big") % sample == 0


def find_tests(paths, pattern):
    roots = [pathlib.Path(p) for p in paths] or [HERE / f for f in FOLDERS]
    files = [f for r in roots for f in ([r] if r.is_file() else sorted(r.rglob("*.ein")))
             if f.parent.name != "lib"]
    return [f for f in files if pattern in str(f)]


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ein")
    parser.add_argument("paths", nargs="*")
    parser.add_argument("-k", default="", help="only files whose path contains this")
    parser.add_argument("-j", type=int, default=4, help="programs at a time")
    parser.add_argument("--update", action="store_true", help="rewrite `//= out:` blocks")
    parser.add_argument("--only", choices=["emulated", "gpu"], help="run this route of every test that has native ones")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="every N-th program")
    parser.add_argument("--cpu", help="the processor of the route O3, `ein run --cpu`")
    options = parser.parse_args(argv)
    if options.cpu:
        ROUTES["O3"] = ROUTES["native"] = ["-O3", "--cpu", options.cpu]
    if options.only != "gpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # what machines without a GPU say
    files = [f for f in find_tests(options.paths, options.k) if in_sample(f, options.sample)]
    if options.only:
        files = [f for f in files if runs_natively(f)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        results = pool.map(lambda f: run_test(options.ein, f, options.only), files)
        for path, (problems, lines) in zip(files, results):
            if options.update and lines is not None:
                if update(path, lines):
                    print(f"updated {path}")
                problems, _ = run_test(options.ein, path)
            failed += bool(problems)
            for problem in dict.fromkeys(p for _, p in problems):
                routes = ", ".join(r for r, p in problems if p == problem)
                print(f"FAILED {path} [{routes}]\n{problem}\n")
    print(f"{len(files) - failed} passed, {failed} failed")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
