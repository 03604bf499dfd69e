#!/usr/bin/env python3
"""How compile time and memory grow with the length of a program.

    bench/growth.py build/ein [-k WORD] [--routes check,grad,ref,native] [--seconds 4] [--most 20000] [--json FILE]

Each kind is a program of about n parts. It is made longer by factors of two until a run takes more than `--seconds`
or n would pass `--most`, through `ein check`, `ein grad` and `ein run` on the reference and natively, nothing cached.
The table has one line for each kind: the largest n, its CPU seconds and its peak memory, and the exponents e of
time ~ n^e and memory ~ n^e, fitted over the upper half of the sizes after what an empty program needs has been taken
off. An exponent is left out where there is too little to fit. It measures and asserts nothing.
"""

import argparse
import json
import math
import os
import resource
import signal
import subprocess
import tempfile


def lets(n):
    """Every definition reads the one before it."""
    yield "let x0: f32 = 1.5;"
    for i in range(1, n):
        yield f"let x{i} = x{i - 1} * 0.5 + {i % 5}.0;"
    yield f"print(x{n - 1});"


def lets_gradient(n):
    yield from lets(n)
    yield f"let d = @x{n - 1} / @x0;"
    yield "print(d);"


def lets_backward(n):
    """Every definition reads the one after it, so all of them are open at once."""
    yield "print(x0);"
    for i in range(n - 1):
        yield f"let x{i} = x{i + 1} * 0.5 + {i % 5}.0;"
    yield f"let x{n - 1} = 1.5;"


def fibonacci(n):
    """x_i = x_{i-1} * x_{i-2}, with a gradient: what is read twice must not be computed twice."""
    yield "let x0 = 1.0001;"
    yield "let x1 = 0.9999;"
    for i in range(2, n):
        yield f"let x{i} = x{i - 1} * x{i - 2};"
    yield f"let d = @x{n - 1} / @x0;"
    yield "print(d);"


def match_arms(n):
    yield "let k[i in 0..8] = i * 3;"
    yield "let y[i] = match k[i] {"
    for i in range(n):
        yield f"  {i} => {i % 7}.5,"
    yield "  _ => 0.0"
    yield "};"
    yield "print(y);"


def else_ifs(n):
    yield "let k[i in 0..8] = i * 3;"
    yield "let y[i] = if k[i] == 0 { 0.5 }"
    for i in range(1, n):
        yield f"  else if k[i] == {i} {{ {i % 7}.5 }}"
    yield "  else { 0.0 };"
    yield "print(y);"


def nested_ifs(n):
    """Conditions inside conditions, 100 deep at most, side by side."""
    yield "let x[i in 0..4] = (i as f32) * 0.5;"
    depth = 100
    for k in range(max(1, n // depth)):
        inner = "x[i]"
        for i in range(min(n, depth)):
            inner = f"if x[i] > {i % 9}.5 {{ {inner} }} else {{ {i % 5}.0 }}"
        yield f"let y{k}[i] = {inner};"
        yield f"print(y{k});"


def stack(n):
    """An array of n scalars that are values."""
    for i in range(n):
        yield f"let x{i} = {i % 7}.5 * {i % 3}.25;"
    yield "let a = [" + ", ".join(f"x{i}" for i in range(n)) + "];"
    yield "print(sum[i](a[i]));"


def stack_gradient(n):
    yield "let w = 1.5;"
    for i in range(n):
        yield f"let x{i} = w * {i % 3}.25;"
    yield "let a = [" + ", ".join(f"x{i}" for i in range(n)) + "];"
    yield "let s = sum[i](a[i] * a[i]);"
    yield "let d = @s / @w;"
    yield "print(d);"


def array(n):
    yield "let a = [" + ", ".join(f"{i % 7}.5" for i in range(n)) + "];"
    yield "print(sum[i](a[i]));"


def clauses(n):
    for i in range(n):
        yield f"let f[{i}] = {i % 13}.0;"
    yield "print(sum[i](f[i]));"


def boxes(n):
    """Clauses over ranges, and one for the rest."""
    for i in range(n):
        yield f"let f[i in {10 * i}..{10 * i + 10}] = {i % 13}.0 + (i as f32);"
    yield "print(sum[i](f[i]));"


def boxes_two(n):
    for i in range(n):
        yield f"let f[{i}, j in 0..3] = {i % 13}.0 + (j as f32);"
    yield "print(sum[i, j](f[i, j]));"


def prints(n):
    yield "let x = 1.5;"
    for i in range(n):
        yield f'print("line {i}: {{x}}");'


def prints_values(n):
    for i in range(n):
        yield f"let x{i} = {i % 7}.5 * 2.0;"
        yield f'print("line {i}: {{x{i}}}");'


def asserts(n):
    for i in range(n):
        yield f"let x{i} = {i % 7}.5 * 2.0;"
        yield f'assert(x{i} > -1.0, "positive");'


def layers(n):
    """A multi-layer perceptron written out, with the gradient of every weight."""
    yield "let x[b in 0..4, i in 0..8] = (b as f32) * 0.1 + (i as f32) * 0.05;"
    for k in range(n):
        yield f"let w{k}[o in 0..8, i in 0..8] = (o as f32) * 0.01 - (i as f32) * 0.02 + 0.1;"
        yield f"let b{k}[o in 0..8] = (o as f32) * 0.01;"
        before = "x" if k == 0 else f"h{k - 1}"
        yield f"let h{k}[b, o] = tanh(sum[i](w{k}[o, i] * {before}[b, i]) + b{k}[o]);"
    yield f"let loss = sum[b, o](h{n - 1}[b, o] * h{n - 1}[b, o]);"
    for k in range(n):
        yield f"let gw{k} = @loss / @w{k};"
        yield f"let gb{k} = @loss / @b{k};"
    yield "print(loss);"
    for k in range(n):
        yield f"print(sum[o, i](gw{k}[o, i] * gw{k}[o, i]) + sum[o](gb{k}[o]));"


def functions(n):
    yield "let x[i in 0..4] = (i as f32);"
    for i in range(n):
        yield f"fn f{i}(x, by: f32) -> f32 {{"
        yield "  let twice = x * 2.0;"
        yield f"  twice + by * {i % 9}.0"
        yield "}"
    yield "let y0[i] = x[i];"
    for i in range(n):
        yield f"let y{i + 1}[i] = f{i}(y{i}[i], 0.5);"
    yield f"print(y{n});"


def calls(n):
    yield "fn f(x: f32, by: f32) -> f32 { let twice = x * 0.5; twice + by }"
    yield "let x0 = 1.0;"
    for i in range(n):
        yield f"let x{i + 1} = f(x{i}, {i % 9}.0);"
    yield f"print(x{n});"


def library_calls(n):
    yield "let x0[b in 0..2, c in 0..4] = (b as f32) + (c as f32) * 0.5;"
    for i in range(n):
        yield f"let x{i + 1}[b, c] = softmax[c](x{i}[b, c]);"
    yield f"print(x{n});"


def blocks(n):
    """Blocks inside blocks, 100 deep at most, side by side."""
    depth = 100
    for k in range(max(1, n // depth)):
        d = min(n, depth)
        yield f"let y{k} = " + "".join(f"{{ let a{i} = {i}.5; " for i in range(d))
        yield " + ".join(f"a{i}" for i in range(d)) + " }" * d + ";"
        yield f"print(y{k});"


def block_statements(n):
    yield "let y = {"
    yield "  let a0 = 1.5;"
    for i in range(1, n):
        yield f"  let a{i} = a{i - 1} * 0.5 + {i % 5}.0;"
    yield f"  a{n - 1}"
    yield "};"
    yield "print(y);"


def requests(n):
    """One loss, n denominators."""
    for i in range(n):
        yield f"let w{i} = {i % 7}.5;"
    yield "let loss = " + " + ".join(f"w{i} * w{i}" for i in range(n)) + ";"
    for i in range(n):
        yield f"let g{i} = @loss / @w{i};"
        yield f"print(g{i});"


def losses(n):
    """n losses, one denominator each."""
    for i in range(n):
        yield f"let w{i} = {i % 7}.5;"
        yield f"let loss{i} = w{i} * w{i} * 0.5;"
        yield f"let g{i} = @loss{i} / @w{i};"
        yield f"print(g{i});"


def inputs(n):
    for i in range(n):
        yield f"let x{i}: f32;"
    yield "let y = 1.0;"
    yield "print(y);"


def gates(n):
    yield "let x[i in 0..16] = (i as f32);"
    for i in range(n):
        yield f"let g{i}[i] = x[i] where i > {i % 5}, x[i] < {i % 11}.5;"
    yield "let y[i in 0..16] = " + " + ".join(f"g{i}[i]" for i in range(n)) + ";"
    yield "print(y);"


def recurrences(n):
    for i in range(n):
        yield f"let r{i}[0] = {i % 3}.5;"
        yield f"let r{i}[t in 1..9] = r{i}[t - 1] * 0.5 + 1.0;"
        yield f"print(r{i}[8]);"


def group(n):
    """One group of n recurrences that read each other."""
    for i in range(n):
        yield f"let r{i}[0] = {i % 3}.5;"
        yield f"let r{i}[t in 1..9] = r{i}[t - 1] * 0.5 + r{(i + 1) % n}[t - 1] * 0.25;"
    yield "print(r0[8]);"


def group_chain(n):
    """One group: within a step each value is read by the next."""
    yield "let r0[0] = 0.5;"
    yield f"let r0[t in 1..9] = r{n - 1}[t - 1] * 0.5;"
    for i in range(1, n):
        yield f"let r{i}[t in 0..9] = r{i - 1}[t] * 0.5 + {i % 3}.5;"
    yield f"print(r{n - 1}[8]);"


def steps(n):
    """Values inside the step of one recurrence."""
    yield "let h[0] = 0.5;"
    yield "let h[t in 1..9] = {"
    yield "  let a0 = h[t - 1] * 0.5;"
    for i in range(1, n):
        yield f"  let a{i} = a{i - 1} * 0.5 + {i % 3}.5;"
    yield f"  a{n - 1}"
    yield "};"
    yield "print(h[8]);"


def steps_gradient(n):
    yield "let w = 0.5;"
    yield "let h[0] = w;"
    yield "let h[t in 1..9] = {"
    yield "  let a0 = h[t - 1] * 0.5;"
    for i in range(1, n):
        yield f"  let a{i} = a{i - 1} * w + {i % 3}.5;"
    yield f"  a{n - 1}"
    yield "};"
    yield "let d = @h[8] / @w;"
    yield "print(d);"


def tests(n):
    yield "let x = 1.5;"
    for i in range(n):
        yield f'test "number {i}" {{ assert(x * {i}.0 >= 0.0, "positive"); }}'


def operators(n):
    yield "let a = 0.5;"
    yield "let y = a" + " + a" * (n - 1) + ";"
    yield "print(y);"


def operators_mixed(n):
    """Many different values in one expression, with a gradient."""
    yield "let a[i in 0..64] = (i as f32) * 0.01;"
    yield "let y = " + " + ".join(f"a[{i % 64}] * {i % 10}.5" for i in range(n)) + ";"
    yield "let d = @y / @a;"
    yield "print(sum[i](d[i]));"


def operators_index(n):
    yield "let y[i in 0..4] = i" + "".join(f" + {k % 3} * i" for k in range(n - 1)) + ";"
    yield "print(y);"


def factors(n):
    """A product of many factors in a sum, with a gradient by one of them."""
    for i in range(n):
        yield f"let a{i}[i in 0..4] = 1.0 + (i as f32) * 0.001;"
    yield "let s = sum[i](" + " * ".join(f"a{i}[i]" for i in range(n)) + ");"
    yield "let d = @s / @a0;"
    yield "print(d);"


def factors_all(n):
    """The same by all of them: the derivatives themselves are n products of n factors."""
    yield "let a[i in 0..64] = 1.0 + (i as f32) * 0.001;"
    yield "let s = " + " * ".join(f"a[{i % 64}]" for i in range(n)) + ";"
    yield "let d = @s / @a;"
    yield "print(d);"


def logic(n):
    yield "let x[i in 0..8] = (i as f32);"
    yield "let y[i] = if " + " && ".join(f"x[i] > {k % 9}.5" for k in range(n)) + " { 1.0 } else { 0.0 };"
    yield "print(y);"


def text(n):
    yield "let x = 1.5;"
    yield 'print("' + " ".join("{x}" for _ in range(n)) + '");'


def comments(n):
    for i in range(n):
        yield f"// line {i}"
    yield "print(1);"


def maxima(n):
    yield "let x[i in 0..8] = (i as f32);"
    for i in range(n):
        yield f"let m{i} = max[i](x[i] * {i % 5}.0);"
    yield "let t = [" + ", ".join(f"m{i}" for i in range(n)) + "];"
    yield "print(max[i](t[i]));"


KINDS = {f.__name__.replace("_", " "): f for f in (
    lets, lets_gradient, lets_backward, fibonacci, match_arms, else_ifs, nested_ifs, stack, stack_gradient, array, clauses,
    boxes, boxes_two, prints, prints_values, asserts, layers, functions, calls, library_calls, blocks, block_statements,
    requests, losses, inputs, gates, recurrences, group, group_chain, steps, steps_gradient, tests, operators,
    operators_mixed, operators_index, factors, factors_all, logic, text, comments, maxima)}
MOST = {"layers": 800}  # a part is several statements
NO_RUN = {"inputs"}

ROUTES = {
    "check": ["check"],
    "grad": ["grad"],
    "ref": ["run", "--backend", "ref"],
    "native": ["run"],
    "test": ["test"],
}


def measure(ein, route, path, limit):
    """CPU seconds and peak memory in MiB of one run; its message when it failed."""
    env = dict(os.environ, EINLANG_CACHE="off")
    with tempfile.TemporaryFile() as err:
        # Limited by its own time, not by the clock: other work on the machine only ever adds to that.
        stop = lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        child = subprocess.Popen([ein, *ROUTES[route], path], stdout=subprocess.DEVNULL, stderr=err, env=env,
                                 preexec_fn=stop)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        message = err.read(400).decode(errors="replace").strip().splitlines()
    if child.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        return None, f"more than {limit} s"
    if child.returncode != 0:
        return None, f"status {child.returncode}: {message[0] if message else ''}"
    return (used.ru_utime + used.ru_stime, used.ru_maxrss / 1024), ""


def exponent(points, floor):
    """The slope of log(cost) over log(n) by least squares, over the upper half of the points that are well above
    what any program costs."""
    clear = [(n, cost) for n, cost in points if cost > floor]
    clear = clear[-max(3, (len(clear) + 1) // 2):]
    if len(clear) < 3:
        return None
    xs = [math.log(n) for n, _ in clear]
    ys = [math.log(cost) for _, cost in clear]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ein")
    parser.add_argument("-k", default="", help="only kinds whose name contains this; several with commas")
    parser.add_argument("--routes", default="check,grad,ref,native")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--least", type=int, default=100)
    parser.add_argument("--most", type=int, default=20000)
    parser.add_argument("--json")
    args = parser.parse_args()
    report = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.ein")

        def write(lines):
            with open(path, "w") as out:
                out.write("\n".join(lines) + "\n")

        write(["print(1);"])
        base = {r: measure(args.ein, r, path, math.ceil(10 * args.seconds))[0] for r in {*args.routes.split(","), "check", "test"}}
        print(f"{'kind':18} {'route':7} {'n':>6} {'seconds':>8} {'MiB':>7}  time  memory")
        for kind, make in KINDS.items():
            if not any(word == kind or (word.endswith("*") and word[:-1] in kind) or not word
                       for word in args.k.split(",")):
                continue
            routes = ["check", "test"] if kind == "tests" else args.routes.split(",")
            for route in routes:
                if kind in NO_RUN and route in ("ref", "native"):
                    continue
                times, sizes, note = [], [], ""
                last = None
                n = min(args.least, MOST.get(kind, args.most) // 8)
                while n <= MOST.get(kind, args.most):
                    write(make(n))
                    found, note = measure(args.ein, route, path, math.ceil(10 * args.seconds))
                    if not found:
                        note = f"n = {n}: {note}"
                        break
                    times.append((n, found[0] - base[route][0]))
                    sizes.append((n, found[1] - base[route][1]))
                    last = (n, *found)
                    if found[0] > args.seconds:
                        break
                    n = n * 2 if n * 2 <= MOST.get(kind, args.most) or n == MOST.get(kind, args.most) else \
                        MOST.get(kind, args.most)
                e_time, e_memory = exponent(times, 0.03), exponent(sizes, 4.0)
                show = lambda e: f"{e:6.2f}" if e is not None else "     -"
                last = last or (0, 0.0, 0.0)
                print(f"{kind:18} {route:7} {last[0]:6} {last[1]:8.2f} {last[2]:7.0f} {show(e_time)} {show(e_memory)}  {note}",
                      flush=True)
                report.append({"kind": kind, "route": route, "n": last[0], "seconds": round(last[1], 3),
                               "mib": round(last[2], 1), "time": e_time, "memory": e_memory, "note": note})
    if args.json:
        with open(args.json, "w") as out:
            json.dump(report, out, indent=1)


if __name__ == "__main__":
    main()
