"""Every public function of the library against differences: at three shapes, in f32 and f64, by every
differentiable parameter, forward and reverse. Usage: coverage.py ROOT EIN [--write] [-k NAME] [--show NAME]

Without options the table is compared with docs/library/coverage.md: the functions, their parameters and shapes have to
be the same, and no error may have left its bound. --write makes the page anew (`make coverage`), -k looks at some
functions only, --show prints the program of one. How arguments are drawn is data: draws.py."""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import re
import subprocess
import sys

import draws

SHAPES = 3
# Coordinates in order of appearance, packs by how many coordinates they have.
EXTENTS = [[3, 2, 4, 5, 2, 3], [2, 4, 3, 2, 5, 3], [4, 1, 2, 3, 2, 2]]
PACKS = {"left": [[], [2], [2]], "right": [[], [], [3]], "batch": [[], [2], [2, 1]], "lead": [[], [3], [2, 2]],
         "s": [[5], [2, 3], []], "mid": [[], [2], []], "rhs": [[], [2], [2, 2]], "k": [[], [2], [2]], "colour": [[], [3], [3]]}
POINTWISE = [[5], [2, 3], []]  # of a function of cells

PRELUDE = """fn weigh(y: [T; ..s]) -> T {
    sum[..s](normal(71, ..s) as T * y[..s])
}
"""

FORMULAS = {  # of a cell; {} are its addresses
    "normal": "normal({})",
    "unit": "(0.1 + 0.8 * uniform({}))",
    "positive": "(0.5 + 2.0 * uniform({}))",
    "spread": "(if uniform({}) < 0.5 { -0.5 - uniform({}) } else { 0.5 + uniform({}) })",
}


class Problem(Exception):
    pass


def dims_of(kind):
    """The dimensions of a written type, None for a scalar."""
    m = re.fullmatch(r"\[(\w+); (.*)\]", kind)
    return m and [d.strip() for d in m.group(2).split(",")]


def element_of(kind):
    return re.match(r"\[?(\w*)", kind).group(1) or "T"


def is_float(element):
    return element not in ("i8", "i16", "i32", "i64", "u8", "bool", "str")


def results_of(item, told):
    """The element types of the results; None: the signature does not say."""
    if told:
        return [None] * told
    if not item["result"]:
        return [None]
    parts = re.findall(r"\[[^\]]*\]|\w+", item["result"]) if item["result"].startswith("(") else [item["result"]]
    return [element_of(p) for p in parts]


def fields_of(kind):
    """The fields of a written record type, {} for another type."""
    fields, depth, start = {}, 0, 0
    inside = kind.strip()[1:-1] + "," if kind.startswith("{") else ""
    for at, c in enumerate(inside):
        depth += (c in "{[(") - (c in "}])")
        if c == "," and depth == 0 and inside[start:at].strip():
            name, _, field = inside[start:at].partition(":")
            fields[name.strip()] = field.strip()
            start = at + 1
    return fields


def flattened(params, told):
    """Every part of a record is a parameter of its own, `z.re`, `p.attention.wq`."""
    out = []
    for p in params:
        fields = fields_of(p["type"]) or {f: "" for f in told.get("records", {}).get(p["name"], [])}
        parts = [{**p, "name": f"{p['name']}.{f}", "type": t} for f, t in fields.items()]
        out += flattened(parts, told) if parts else [p]
    return out


def record_text(value):
    """A record as written, from {field: text or record}."""
    if isinstance(value, str):
        return value
    return "{ " + ", ".join(f"{field}: {record_text(part)}" for field, part in value.items()) + " }"


class Function:
    """A function of the library, and the calls of it that are compared."""

    def __init__(self, module, item):
        self.module, self.item = module, item
        self.name = item["name"]
        self.key = f"{module.removeprefix('std::')}.{self.name}"
        self.told = draws.BY_FUNCTION.get(self.key, {})
        self.parts = list(fields_of(item["result"] or "")) or self.told.get("parts", [])
        self.results = [None] * len(self.parts) if self.parts else results_of(item, self.told.get("results"))
        self.params = flattened(item["params"], self.told)
        self.floats = [p["name"] for p in self.params if self.is_float(p)]
        self.pointwise = all(not p["type"] for p in self.params if self.is_float(p)) and not item["coords"]
        self.shapes = [self.shape(k) for k in range(self.told.get("shapes", SHAPES))]
        self.generic = not any(element_of(p["type"]) == "f32" for p in self.params)

    def draw(self, name, k):
        found = self.told.get(name, draws.BY_NAME.get(name, "normal"))
        return found[k] if isinstance(found, list) else found

    def is_float(self, p):
        draw = self.draw(p["name"], 0)
        return is_float(element_of(p["type"])) and not draw.startswith(("=", "|", "below", "coin"))

    def extent(self, name, k):
        return self.told.get("extents", {}).get(name, [None] * SHAPES)[k]

    def shape(self, k):
        """Parameter → [(coordinate, extent)…]; None where there is nothing to index."""
        known, out = {}, {}
        tensors = 0
        for p in self.params:
            dims = dims_of(p["type"])
            if dims is None:
                mapped = self.pointwise and self.is_float(p) and (k > 0 or tensors == 0 or "records" in self.told)
                tensors += mapped
                out[p["name"]] = [(f"i{n}", e) for n, e in enumerate(POINTWISE[k])] if mapped else []
                continue
            coords = []
            for d in dims:
                if d.startswith(".."):
                    pack = self.told.get("packs", PACKS)[d[2:]][k]
                    coords += [(f"{d[2:]}{n}", e) for n, e in enumerate(pack)]
                elif d.isdigit():
                    coords.append((f"of{d}", int(d)))
                else:
                    if d not in known:
                        known[d] = self.extent(d, k) or EXTENTS[k][len(known) % len(EXTENTS[k])]
                    coords.append((d, known[d]))
            out[p["name"]] = coords
        return out

    def argument(self, p, k, number):
        """(statements, the argument, what it is differentiated by)"""
        name = f"s{k}_{p['name']}".replace(".", "_")
        draw = self.draw(p["name"], k)
        coords = self.shapes[k][p["name"]]
        if draw.startswith("="):
            return "", draw[1:].strip(), None
        if draw.startswith("|"):
            return "", draw, None
        # A coordinate that stands twice has two names here.
        names = []
        for c, _ in coords:
            names.append(c if c not in names else c + "_2")
        slots = ", ".join(f"{n} in 0..{e}" for n, (_, e) in zip(names, coords))
        left = f"{name}[{slots}]" if coords else name

        def cell(formula, *at):
            seed = 100 * number + k
            return FORMULAS[formula].replace("{}", ", ".join([str(seed), *(at or names or ["0"])]))

        if draw.startswith("below"):
            limit = draw.split()[1]
            limit = limit if limit.isdigit() else dict(c for s in self.shapes[k].values() for c in s)[limit]
            kind = element_of(p["type"]) if not is_float(element_of(p["type"])) else "i32"
            return f"let {left} = floor({limit} as f32 * {cell_uniform(number, k, names)}) as {kind};\n", name, None
        if draw == "coin":
            return f"let {left} = {cell_uniform(number, k, names)} < 0.67;\n", name, None
        if re.fullmatch(r"-?[\d.]+", draw):
            return f"let {name} = {draw};\n", name, name
        if draw in ("regular", "symmetric", "definite"):
            return self.matrix(draw, name, names, coords, cell)
        body = re.sub("|".join(FORMULAS), lambda m: cell(m.group()), draw)
        return f"let {left} = {body};\n", name, name

    def matrix(self, draw, name, names, coords, cell):
        slots = [f"{n} in 0..{e}" for n, (_, e) in zip(names, coords)]
        left, (i, j), n = ", ".join(slots), names[-2:], coords[-1][1]
        lead = ", ".join(names[:-2]) + (", " if names[:-2] else "")
        diagonal = f"(if {i} == {j} {{ 3.0 }} else {{ 0.0 }})"
        if draw == "regular":
            return f"let {name}[{left}] = {cell('normal')} + {diagonal};\n", name, name
        base = f"{name}_of"
        out = f"let {base}[{left}] = {cell('normal')};\n"
        if draw == "symmetric":
            apart = diagonal.replace("3.0", f"3.0 * ({i} as f32)")
            out += f"let {name}[{left}] = {base}[{lead}{i}, {j}] + {base}[{lead}{j}, {i}] + {apart};\n"
        else:
            out += (f"let {name}[{left}] = sum[m in 0..{n}]({base}[{lead}{i}, m] * {base}[{lead}{j}, m])"
                    f" + {diagonal};\n")
        return out, name, base

    def calls(self, element="f32"):
        """The calls at all shapes without any request."""
        out = f"use {self.module}::{self.name} as tested;\n{PRELUDE}"
        self.denominators = []  # (shape, parameter, value)
        for k in range(len(self.shapes)):
            args = {}
            for number, p in enumerate(self.params):
                text, argument, by = self.argument(p, k, number + 1)
                out += text
                argument = f"{argument} as f64" if by and element == "f64" else argument
                *path, field = p["name"].split(".")
                within = args
                for part in path:
                    within = within.setdefault(part, {})
                within[field] = argument
                if by:
                    self.denominators.append((k, p["name"], by))
            brackets = f"[{', '.join(c for c in self.item['coords'] if not c.startswith('..'))}]"
            given = ", ".join(record_text(a) for a in args.values())
            call = f"tested{brackets if self.item['coords'] else ''}({given}){self.told.get('take', '')}"
            names = [f"s{k}_y{r}" for r in range(len(self.results))]
            left = f"s{k}_y" if self.parts else names[0] if len(names) == 1 else f"({', '.join(names)})"
            out += f"let {left} = {call};\n"
            out += "".join(f"let {n} = s{k}_y.{part};\n" for n, part in zip(names, self.parts))
        return out

    def program(self):
        out = self.calls()
        for k in range(len(self.shapes)):
            parts = [f"weigh(s{k}_y{r})" for r, e in enumerate(self.results) if e is None or is_float(e)]
            out += f"let s{k}_weighed = {' + '.join(parts)};\n"
        for k, parameter, by in self.denominators:
            out += f"let s{k}_by_{parameter.replace('.', '_')} = @s{k}_weighed / @{by};\n"
        return out

    def shape_text(self):
        parts = []
        for shape in self.shapes:
            one = ["×".join(str(e) for _, e in shape[f]) or "scalar" for f in self.floats]
            parts.append(", ".join(one))
        return " · ".join(f"({p})" if "," in p else p for p in parts)


def cell_uniform(number, k, names):
    return f"uniform({', '.join([str(100 * number + k), *(names or ['0'])])})"


def run(ein, *args, stdin):
    return subprocess.run([ein, *args], input=stdin, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "EINLANG_CACHE": "off"})


def result_types(ein, f):
    """What the compiler says the results are made of."""
    done = run(ein, "check", "-", "--facts", "--format", "json", stdin=f.calls())
    if done.returncode != 0:
        raise Problem(done.stderr)
    found = {x["name"]: x["dtype"] for x in json.loads(done.stdout)["families"]}
    return [found.get(f"s0_y{r}", "f32") for r in range(len(f.results))]


def check(ein, f):
    """A row of the table: (function, by, shapes, errors) or (function, why not)."""
    if not f.floats:
        return f.key, "no parameter is a float"
    if f.told.get("writes"):
        return f.key, "it writes a file"
    if None in f.results:
        f.results = result_types(ein, f)
    if not any(map(is_float, f.results)):
        return f.key, f"its result is {' and '.join(sorted(set(f.results)))}"
    if f.generic:
        wide = run(ein, "check", "-", stdin=f.calls("f64"))
        if wide.returncode != 0:
            raise Problem("in f64: " + wide.stderr)
    done = run(ein, "gradcheck", "-", "--quick", "--format", "json", stdin=f.program())
    if not done.stdout:
        raise Problem(done.stderr or f"status {done.returncode}")
    report = json.loads(done.stdout)
    if not report["ok"]:
        raise Problem(json.dumps([r for r in report["requests"] if r["verdict"] not in ("agrees", "not compared")],
                                 indent=1) + "\n".join(report.get("problems", [])))
    by_name = {r["name"]: r for r in report["requests"]}
    worst, seen = {"differences": 0.0, "own_type": 0.0, "forward": 0.0}, set()
    notes = set()
    for k, parameter, _ in f.denominators:
        r = by_name[f"s{k}_by_{parameter.replace('.', '_')}"]
        if r["verdict"] == "not compared":
            notes.add(r["note"])
            continue
        seen.add(parameter)
        for kind, value in r["errors"].items():
            worst[kind] = max(worst[kind], value)
    missing = [p for p in f.floats if p not in seen]
    if len(missing) == len(f.floats) and notes == {"not compared: depends on a surrogate rule"}:
        return f.key, "its rule is a surrogate"
    if missing:
        raise Problem(f"never compared by {', '.join(missing)}: {notes}")
    return f.key, ", ".join(f.floats), f.shape_text(), tuple(worst[k] for k in ("differences", "own_type", "forward"))


LEAST = -3  # smaller errors are noise


def bound(error):
    """The power of ten that an error stays below, in units of what is allowed."""
    return max(LEAST, math.ceil(math.log10(error))) if error > 0 else LEAST


def cells(row):
    if len(row) == 2:
        return [f"`{row[0]}`", f"not differentiable: {row[1]}", "", "", "", ""]
    return [f"`{row[0]}`", row[1], row[2], *(f"1e{bound(e)}" for e in row[3])]


def table(rows):
    lines = ["| function | by | shapes | f64 | f32 | forward |", "|---|---|---|---|---|---|"]
    return lines + ["| " + " | ".join(cells(r)) + " |" for r in rows]


PAGE = """# What of the library is checked against differences

Written by `make coverage` (tests/stdlib/coverage.py), which the tests run too: a public function that is not in this
table, or one whose error has left its bound, fails them.

Every function is called at three shapes, and the derivative of a random weighting of its results by each float
parameter is compared with central differences, as `ein gradcheck` does: in f64 with differences along every cell and
along random directions; in f32 with the same program in f64; and forward mode with reverse mode. The last three columns
are the worst errors over all shapes and parameters, in units of what is allowed (above 1 would be an error), as the
power of ten that they stay below; 1e{least} is the least that is told apart. What is allowed: f64 a relative 1e-6 (and
1e-8 of the largest slope, and what rounding does to the differences), f32 a relative 1e-3 (and 1e-4 of the largest),
forward against reverse 1e-8. Values at a kink, where a difference means nothing, are left out. Every function is also
compiled for f64 arguments, but for those whose signature says f32: their f64 column is the same program widened. How
arguments are drawn is in tests/stdlib/draws.py.

{checked} functions are differentiable, {others} are not.

{table}
"""


def page(rows):
    others = sum(len(r) == 2 for r in rows)
    return PAGE.format(least=LEAST, checked=len(rows) - others, others=others, table="\n".join(table(rows)))


def split_row(line):
    return [c.strip() for c in line.strip().strip("|").split("|")]


def differences(fresh, kept):
    """What is stale or too large in the page, in words."""
    out = []
    head = lambda text: text[:text.index("| function")]
    if head(fresh) != head(kept):
        out.append("the text above the table")
    lines = [{split_row(l)[0]: split_row(l) for l in t.splitlines() if l.startswith("| `")} for t in (fresh, kept)]
    for name in sorted(lines[0].keys() | lines[1].keys()):
        a, b = lines[0].get(name), lines[1].get(name)
        if a is None or b is None:
            out.append(f"{name} is {'no longer there' if a is None else 'missing'}")
        elif a[1:3] != b[1:3]:
            out.append(f"{name}: {' · '.join(b[1:3])}, now {' · '.join(a[1:3])}")
        else:
            # One more power of ten is another machine's rounding.
            out += [f"{name}: an error of {x} where the page has {y}" for x, y in zip(a[3:], b[3:])
                    if x and float(x) > 10 * float(y) * 1.001]
    return out


def self_test():
    rows = [("math.a", "x", "3", (1e-5, 0.02, 0.0)), ("math.b", "its result is i32")]
    text = page(rows)
    assert differences(text, text) == []
    assert "| `math.a` | x | 3 | 1e-3 | 1e-1 | 1e-3 |" in text, text
    for other in ([rows[0]], [("math.a", "x", "4", rows[0][3]), rows[1]], [("math.a", "x", "3", (0.5, 0.02, 0.0)), rows[1]]):
        assert differences(page(other), text), other
    assert not differences(page([("math.a", "x", "3", (1e-5, 0.002, 0.0)), rows[1]]), text)


def main():
    self_test()
    options = argparse.ArgumentParser()
    options.add_argument("root", type=pathlib.Path)
    options.add_argument("ein")
    options.add_argument("--write", action="store_true")
    options.add_argument("-k", default="")
    options.add_argument("--show")
    options = options.parse_args()
    library = json.loads(run(options.ein, "doc", "--library", "--format", "json", stdin="").stdout)
    functions = [Function(m["name"], i) for m in library for i in m["items"] if i["kind"] == "fn"]
    unknown = draws.BY_FUNCTION.keys() - {f.key for f in functions}
    if unknown:
        sys.exit(f"draws.py: no such function: {', '.join(sorted(unknown))}")
    if options.show:
        print(next(f for f in functions if f.key == options.show).program(), end="")
        return 0
    functions = [f for f in functions if options.k in f.key]

    def one(f):
        try:
            return check(options.ein, f), None
        except Problem as e:
            return None, f"{f.key}: {e}\n"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = list(pool.map(one, functions))
    rows, problems = [r for r, _ in done if r], [p for _, p in done if p]
    for p in problems:
        print(p)
    print(f"{len(functions)} functions, {len(problems)} wrong")
    if problems:
        return 1
    if options.k:
        print("\n".join(table(rows)))
        return 0
    path = options.root / "docs/library/coverage.md"
    if options.write:
        path.write_text(page(rows))
        return 0
    stale = differences(page(rows), path.read_text())
    for s in stale:
        print(f"docs/library/coverage.md: {s}; run `make coverage`")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
