#!/usr/bin/env python3
"""How compile time and memory grow with the length of a program.

    bench/growth.py build/ein [-k WORD] [--routes check,grad,native] [--seconds 3] [--limit 1.2] [--json FILE]

Each kind is a program of about n parts. It is doubled in length until a run takes more than `--seconds` or n would pass
`--most` (16 times that while runs take almost no time). The routes are `ein check`, `ein grad`, and `ein run` on the
reference (`--routes ref`) and natively, nothing cached. The table has one line for each kind and route: the largest n,
its CPU seconds and its peak memory, and the exponents e of time ~ n^e and memory ~ n^e, fitted over the last factor of
four in n, after subtracting what an empty program needs. Kinds that ask for derivatives are marked `@`. A time is the
least of `--repeat` runs, of more where they are short: other work on the machine only ever adds to it. An exponent is
left out where a program of the largest size is too quick to tell. Times say little on a busy machine, or where the
longer programs no longer fit its caches: with `--instructions` the "seconds" are billions of instructions, counted by
valgrind, which is 50 times slower and gives the same every time.

The exit status is 1 when time grows with an exponent above `--limit`, when a program is refused, or when 200 layers
with all their gradients take more than 4 s natively. A kind above the limit is measured once more before it counts,
and the lower exponent holds.
"""

import argparse
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
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
DERIVATIVES = {"lets gradient", "fibonacci", "stack gradient", "layers", "requests", "losses", "steps gradient",
               "operators mixed", "factors", "factors all"}
SQUARE = {"factors all"}  # the result itself is that large

ROUTES = {
    "check": ["check"],
    "grad": ["grad"],
    "ref": ["run", "--backend", "ref"],
    "native": ["run"],
    "test": ["test"],
}


def count(ein, route, path):
    """Instructions of one run, in billions; its message when it failed."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", ein, *ROUTES[route], path]
    ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                         env=dict(os.environ, EINLANG_CACHE="off"))
    found = re.search(r"Collected : ([0-9]+)", ran.stderr)
    if ran.returncode != 0 or not found:
        return None, f"status {ran.returncode}: {ran.stderr[-200:]}"
    return (int(found.group(1)) / 1e9, 0.0), ""


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


def least(ein, route, path, limit, repeat):
    """The least CPU time of several runs, the memory of the last; with no repeats the instructions of one."""
    if repeat == 0:
        return count(ein, route, path)
    best, spent = None, 0.0
    for i in range(5 * repeat):
        found, note = measure(ein, route, path, limit)
        if not found:
            return None, note
        spent += found[0]
        best = (min(found[0], best[0]) if best else found[0], found[1])
        if i + 1 >= repeat and (spent > 0.5 or i + 1 >= 2 * repeat):
            break
    return best, ""


def exponent(points, floor):
    """The slope of log(cost) over log(n) by least squares, over the three longest programs that cost clearly more
    than an empty one."""
    clear = [(n, cost) for n, cost in points if cost > floor][-3:]
    if len(clear) < 3:
        return None
    xs = [math.log(n) for n, _ in clear]
    ys = [math.log(cost) for _, cost in clear]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)


def grow(args, kind, route, base, write):
    """One line of the table."""
    most = MOST.get(kind, args.most)
    times, sizes, note, last = [], [], "", (0, 0.0, 0.0)
    n = min(args.least, most // 8)
    while n <= most or (last[1] < 0.25 and n <= 16 * most):
        path = write(KINDS[kind](n))
        found, note = least(args.ein, route, path, math.ceil(10 * args.seconds), args.repeat)
        if not found:
            note = f"n = {n}: {note}" if n <= most else ""
            break
        times.append((n, found[0] - base[route][0]))
        sizes.append((n, found[1] - base[route][1]))
        last = (n, *found)
        if found[0] > args.seconds:
            break
        n *= 2
    return {"kind": kind, "route": route, "derivatives": kind in DERIVATIVES, "n": last[0], "seconds": round(last[1], 3),
            "mib": round(last[2], 1), "time": exponent(times, 0.02), "memory": exponent(sizes, 4.0), "note": note}


def line(r):
    show = lambda e: f"{e:6.2f}" if e is not None else "     -"
    mark = "@" if r["derivatives"] else " "
    return (f"{r['kind']:18} {mark} {r['route']:7} {r['n']:6} {r['seconds']:8.2f} {r['mib']:7.0f} {show(r['time'])} "
            f"{show(r['memory'])}  {r['note']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ein")
    parser.add_argument("-k", default="", help="only kinds whose name contains this; several with commas")
    parser.add_argument("--routes", default="check,grad,native")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--least", type=int, default=625)
    parser.add_argument("--most", type=int, default=20000)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--limit", type=float, default=1.2)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.instructions:
        args.repeat = 0
    report, wrong = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.ein")

        def write(lines):
            with open(path, "w") as out:
                out.write("\n".join(lines) + "\n")
            return path

        write(["print(1);"])
        routes = args.routes.split(",")
        base = {r: least(args.ein, r, path, math.ceil(10 * args.seconds), 5 if args.repeat else 0)[0] for r in {*routes, "check", "test"}}
        print(f"{'kind':18} @ {'route':7} {'n':>6} {'seconds':>8} {'MiB':>7}  time  memory")
        for kind in KINDS:
            if not any(word == kind or (word.endswith("*") and word[:-1] in kind) or not word
                       for word in args.k.split(",")):
                continue
            for route in ["check", "test"] if kind == "tests" else routes:
                if kind in NO_RUN and route in ("ref", "native"):
                    continue
                found = grow(args, kind, route, base, write)
                above = lambda r: r["time"] is not None and r["time"] > args.limit
                if above(found) and not found["note"] and args.repeat:
                    again = grow(args, kind, route, base, write)
                    if again["time"] is not None and again["time"] < found["time"]:
                        found = again
                if found["note"]:
                    wrong.append(f"{kind}, {route}: {found['note']}")
                elif above(found) and kind not in SQUARE:
                    wrong.append(f"{kind}, {route}: time grows with exponent {found['time']:.2f}")
                print(line(found), flush=True)
                report.append(found)
        if not args.k and "native" in routes and args.repeat:
            found, note = least(args.ein, "native", write(layers(200)), 60, 3)
            print(f"200 layers with gradients, natively: {found[0]:.2f} s" if found else note)
            if not found or found[0] > 4.0:
                wrong.append("200 layers with gradients take more than 4 s")
    if args.json:
        with open(args.json, "w") as out:
            json.dump(report, out, indent=1)
    for w in wrong:
        print("above the limit: " + w)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
