"""A new name for a name changes nothing else: names of the programs below tests/run, tests/grad and examples are renamed through the
language server, one at a time. The program must report what it reported, and print what it printed, but for the name.
Usage: renames.py EIN [--count N] [--runs N] [--seed S] [FILE…]

Of all names that are defined, about N are tried (0: all); of these, about as many as `--runs` says are run too (all: all), on the
reference evaluator. The
new name is as long as the old one, so that tables keep their widths, and stands nowhere else in the file. One in four becomes a name that
the file has: either that is refused, or it changes nothing either."""

import argparse
import importlib.util
import itertools
import pathlib
import random
import re
import shutil
import sys
import tempfile

from client import Client, Refused, at, uri

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ("tests/run", "tests/grad", "examples")
LONG = ("examples",)  # checked, but not run
# A program that spells names which the compiler makes of its own: those of coordinates of a derivative.
MADE = {"tests/grad/names_of_jacobians.ein"}
# What a name may be that has no other. Any other refusal of a name that is new to the file is a mistake.
REFUSED = re.compile(r"is built in|is the name of a file|fields of records are not renamed|in the standard library|stands for|takes the field of a record")


def tests_of_programs():
    """tests/run.py, which knows the inputs and the arguments of a program."""
    spec = importlib.util.spec_from_file_location("programs", ROOT / "tests" / "run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["programs"] = module
    spec.loader.exec_module(module)
    return module


PROGRAMS = tests_of_programs()


def offsets(text):
    """Where each line begins, as the protocol counts lines."""
    return [0] + [m.end() for m in re.finditer(r"\r\n|\r|\n", text)]


def offset(text, starts, place):
    """Of a position in UTF-16."""
    begin = starts[place["line"]]
    units, i = 0, begin
    while units < place["character"]:
        units += 2 if ord(text[i]) > 0xFFFF else 1
        i += 1
    return i


def names_of(client, where, text):
    """Where names are defined, by the semantic tokens: (position, name)."""
    legend = client.server["capabilities"]["semanticTokensProvider"]["legend"]["tokenModifiers"]
    bit = 1 << legend.index("declaration")
    data = client.ask("textDocument/semanticTokens/full", {"textDocument": {"uri": where}})["data"]
    starts, out, row, column = offsets(text), [], 0, 0
    for i in range(0, len(data), 5):
        column = column + data[i + 1] if data[i] == 0 else data[i + 1]
        row += data[i]
        if data[i + 4] & bit:
            begin = offset(text, starts, at(row, column))
            out.append((at(row, column), re.compile(r"\w+").match(text, begin)[0]))
    return out


def fresh(rng, name, text):
    """A name as long that the file does not spell."""
    spelled = set(re.findall(r"\w+", text))
    letters = "qzvkwjxyhbgmptdsfnrlucoiae"
    if len(name) > 1:
        for _ in range(1000):
            new = "".join(rng.choice(letters[:10]) for _ in name)
            if new not in spelled:
                return new
    return next((c for c in itertools.chain(letters, letters.upper()) if c not in spelled and len(name) == 1), None)


def renamed(text, edits):
    starts = offsets(text)
    for e in sorted(edits, key=lambda e: -offset(text, starts, e["range"]["start"])):
        begin, end = (offset(text, starts, e["range"][k]) for k in ("start", "end"))
        text = text[:begin] + e["newText"] + text[end:]
    return text


def replaced(word, by, text):
    """Also in the names that the compiler makes of it: `d_n` is the coordinate of a derivative by a value over `n`, `n_1` another `n`."""
    return re.sub(rf"(?<!\w)((?:d_)*){re.escape(word)}((?:_\d+)*)(?!\w)", lambda m: m[1] + by + m[2], text)


class Program:
    def __init__(self, ein, path, copy):
        self.ein, self.path, self.copy = ein, path, copy
        self.text = path.read_bytes().decode("utf-8")
        self.test = PROGRAMS.read_test(path)
        self.reports, self.prints = None, None

    def execute(self, verb, words, old=None, new=None):
        """The codes of what is reported, the status, and what is printed, with the old name in it again."""
        args = [replaced(old, new, w) for w in words] if old else words
        done = PROGRAMS.execute([self.ein, verb, str(self.copy), "--error-format", "json", *args])
        codes = sorted(d["code"] for d in done.diagnostics)
        return done.status, codes, done.other.count("\n"), done.out

    def inputs(self, scratch):
        words = []
        for number, (name, given) in enumerate(self.test.inputs.items()):
            PROGRAMS.write_npy(scratch / f"{number}.npy", *given)
            words += ["--in", f"{name}={scratch / str(number)}.npy"]
        return words

    def same(self, verb, words, known, old, new, text):
        """Whether the program with the new name says `known`; an input may have the name too."""
        self.copy.write_bytes(text.encode())
        try:
            for args in ((None, None), (old, new)):
                status, codes, other, out = self.execute(verb, words, *args)
                now = (status, codes, other, [replaced(new, old, line) for line in out])
                before = (*known[:3], [replaced(new, old, line) for line in known[3]])  # a name that stood there before
                if now == before:
                    return None
                if not any(old in w for w in words):
                    break
            return f"says {now}, not {before}"
        finally:
            self.copy.write_bytes(self.text.encode())

    def check(self, old, new, text, runs):
        with tempfile.TemporaryDirectory() as scratch:
            inputs = self.inputs(pathlib.Path(scratch))
            if self.reports is None:
                self.reports = self.execute("check", inputs)
            wrong = self.same("check", inputs, self.reports, old, new, text)
            if wrong or not runs:
                return wrong
            words = inputs + ["--backend", "ref"] + self.test.args
            if self.prints is None:
                self.prints = self.execute("run", words)
            return self.same("run", words, self.prints, old, new, text)


def try_name(client, program, rng, place, name, runs, names):
    """What is wrong with a new name; "" says that it was refused for a reason."""
    taken = rng.random() < 0.25
    new = rng.choice([n for n in names if n != name] or [None]) if taken else fresh(rng, name, program.text)
    if new is None:
        return ""
    try:
        changes = client.ask("textDocument/rename", {
            "textDocument": {"uri": uri(program.path)}, "position": place, "newName": new})["changes"]
    except Refused as e:
        return "" if taken or REFUSED.search(str(e)) else f"`{name}` cannot become `{new}`: {e}"
    if list(changes) != [uri(program.path)]:
        return ""  # a module that other programs use: tests/ide/uses.ein
    text = renamed(program.text, changes[uri(program.path)])
    wrong = program.check(name, new, text, runs)
    return f"`{name}` as `{new}`: {wrong}\n{difference(program.text, text)}" if wrong else None


def difference(before, after):
    pairs = zip(before.split("\n"), after.split("\n"))
    return "\n".join(f"    {n}: {b}" for n, (a, b) in enumerate(pairs, 1) if a != b)


def programs(options, copies):
    if options.files:
        paths = [pathlib.Path(f).resolve() for f in options.files]
    else:
        paths = sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.ein") if "lib" not in p.parts)
    for path in paths:
        program = Program(options.ein, path, copies / path.relative_to(ROOT))
        if not program.test.has_errors() and str(path.relative_to(ROOT)) not in MADE:
            yield program


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ein")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="*")
    options = parser.parse_intermixed_args()
    options.ein = str(pathlib.Path(options.ein).resolve())
    rng = random.Random(options.seed)
    complaints, tried, ran, refused = [], 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        copies = pathlib.Path(folder)
        for name in FOLDERS:
            shutil.copytree(ROOT / name, copies / name)
        all_programs = list(programs(options, copies))
        # A program in the middle of the list has as many tries as one at its end.
        share = -(-options.count // len(all_programs)) if options.count else None
        chance = min(1.0, options.count / (len(all_programs) * share)) if options.count else 1.0
        often = options.runs / options.count if options.count else 1.0
        client = Client(options.ein)
        for program in all_programs:
            if rng.random() > chance:
                continue
            client.open(uri(program.path), program.text)
            found = names_of(client, uri(program.path), program.text)
            for place, name in rng.sample(found, min(share or len(found), len(found))):
                runs = rng.random() < often and program.path.relative_to(ROOT).parts[0] not in LONG
                wrong = try_name(client, program, rng, place, name, runs, sorted({n for _, n in found}))
                tried += 1
                refused += wrong == ""
                ran += runs and wrong is None
                if wrong:
                    print(f"{program.path.relative_to(ROOT)}:{place['line'] + 1}:{place['character'] + 1}: {wrong}", flush=True)
                    complaints.append(wrong)
            client.tell("textDocument/didClose", {"textDocument": {"uri": uri(program.path)}})
        client.close()
    print(f"{tried} names, {refused} of them refused, {ran} programs run: {len(complaints) or 'nothing'} wrong")
    # At least half are renamed, or the test says nothing.
    sys.exit(1 if complaints or 2 * refused > tried else 0)


if __name__ == "__main__":
    main()
