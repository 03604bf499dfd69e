"""Axis mistakes: one index, one left side or one coordinate of a call put where it does not belong, in programs whose
coordinates have names and whose extents may all be equal (fuzz/axes), so that shapes do not reveal the mistake. What
counts is whether `ein check` says anything, an error or a warning. mutate.py --axes runs this."""

import collections
import concurrent.futures
import os
import random
import re

IDENT = re.compile(r"[A-Za-z_]\w*")
REDUCTIONS = {"sum", "prod", "max", "min", "mean", "all", "any", "argmax", "argmin"}
KINDS = ["swapped indices", "wrong index", "swapped left sides", "wrong coordinate", "shifted index"]


class Brackets:
    """`name[a, b]`: where it stands, its slots as (begin, end), and what it is: "left", "call" or "read"."""

    def __init__(self, name, begin, end, slots, what):
        self.name, self.begin, self.end, self.slots, self.what = name, begin, end, slots, what


def statements(text):
    """(begin, end) of the `let`s at the top level that have a value."""
    out, depth, begin = [], 0, 0
    for m in re.finditer(r"//[^\n]*|\"[^\"\n]*\"|[()\[\]{}]|;", text):
        t = m.group()
        depth += (t in "([{") - (t in ")]}") if len(t) == 1 else 0
        if t == ";" and depth == 0 or t == "}" and depth == 0:
            piece = text[begin:m.end()]
            start = begin + len(piece) - len(piece.lstrip())
            if text.startswith("let ", start) and "=" in piece:
                out.append((start, m.end()))
            begin = m.end()
        elif t.startswith("//") and depth == 0:
            begin = m.end()
    return out


def brackets_of(text, begin, end):
    found = []
    for m in IDENT.finditer(text, begin, end):
        if m.end() >= end or text[m.end()] != "[":
            continue
        depth, at, cuts = 0, m.end(), [m.end() + 1]
        for at in range(m.end(), end):
            depth += (text[at] in "([") - (text[at] in ")]")
            if depth == 1 and text[at] == ",":
                cuts += [at, at + 1]
            if depth == 0:
                break
        cuts.append(at)
        slots = []
        for a, b in zip(cuts[::2], cuts[1::2]):
            piece = text[a:b]
            a += len(piece) - len(piece.lstrip())
            slots.append((a, a + len(piece.strip())))
        left = text[:m.start()].endswith("let ")
        called = text[at + 1:at + 2] == "("
        what = "left" if left else "call" if called and m.group() not in REDUCTIONS else "sum" if called else "read"
        found.append(Brackets(m.group(), m.start(), at + 1, slots, what))
    return found


def replace(text, *edits):
    for (a, b), new in sorted(edits, reverse=True):
        text = text[:a] + new + text[b:]
    return text


def mistakes(text):
    """Every mistake of every kind: (kind, what, the program with it)."""
    for begin, end in statements(text):
        line = text.count("\n", 0, begin) + 1
        groups = brackets_of(text, begin, end)
        spelled = lambda s: text[s[0]:s[1]]
        names = sorted({spelled(s) for g in groups for s in g.slots if IDENT.fullmatch(spelled(s))})
        for g in groups:
            bare = [s for s in g.slots if IDENT.fullmatch(spelled(s))]
            label = lambda new: f"line {line}: `{text[g.begin:g.end]}` {new}"
            if g.what in ("read", "left"):
                kind = KINDS[0] if g.what == "read" else KINDS[2]
                for i, a in enumerate(bare):
                    for b in bare[i + 1:]:
                        if spelled(a) != spelled(b):
                            yield kind, label(f"{spelled(a)} <-> {spelled(b)}"), replace(
                                text, (a, spelled(b)), (b, spelled(a)))
            if g.what in ("read", "call"):
                for s in bare:
                    for new in names:
                        if new == spelled(s):
                            continue
                        yield KINDS[1] if g.what == "read" else KINDS[3], label(f"{spelled(s)} -> {new}"), replace(
                            text, (s, new))
            if g.what == "read":
                for s in bare:
                    for by in (" - 1", " + 1"):
                        yield KINDS[4], label(spelled(s) + by), replace(text, (s, spelled(s) + by))


def measure(check, folder, count, seed, jobs):
    """Rates by kind, the mistakes that went unnoticed, and faults. `check(text)` gives (fault, said anything)."""
    drawn = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as file:
            text = file.read()
        fault, said = check(text)
        if fault or said:
            return {}, [], [f"{name} is not clean: {fault or 'a warning or an error'}"]
        drawn += [(kind, f"{name} {what}", program) for kind, what, program in mistakes(text)]
    if count and count < len(drawn):
        drawn = random.Random(seed).sample(drawn, count)
    rates, missed, faults = collections.defaultdict(lambda: [0, 0]), [], []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        answers = pool.map(lambda d: check(d[2]), drawn)
        for (kind, what, _), (fault, said) in zip(drawn, answers):
            if fault:
                faults.append(f"{what}: {fault}")
            rates[kind][0] += said
            rates[kind][1] += 1
            if not said:
                missed.append(f"{kind}: {what}")
    return rates, missed, faults
