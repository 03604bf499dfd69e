"""What the language server answers at the places that tests/ide/*.ein mark. Usage: run.py EIN [FILE…]

A comment `//   ^ kind: wanted` is about the place above its caret, in the line before that is no such comment:

    here: NAME               gives the place a name
    hover: WORDS             the text has these words; `hover not:` has not, `hover none:` says nothing is shown
    definition: NAME         leads to the place of this name; `definition in: FILE` to that file
    highlight, references: NAME …    these places and no others; `references in: FILE COUNT` counts those of a file
    rename TO: NAME …        changes these places; `rename TO refused: WORDS`
    complete: NAME …         are offered behind the place; `complete not: NAME …`; `complete use: NAME LINE` with this edit;
                             `complete text: TEXT` is written
    signature: LABEL | PARAMETER
    action: TITLE => LINE    the line becomes this; `action not: TITLE`
    hint: TEXT               an inlay hint stands there
    token: TYPE              a semantic token begins there
    mistake: CODE WORDS      a diagnostic begins there; every diagnostic of a file is marked
    related: WORDS           of the diagnostics of the file, one has further information here
    lens: TITLE              a lens stands at the line
    symbol: NAME             a symbol's name begins there
    fold: COUNT              so many lines are folded from that line on"""

import pathlib
import re
import sys

from client import Client, Refused, at, uri

MARK = re.compile(r"^\s*//\s*\^ ([a-z]+)(?: ([^:]*))?: ?(.*)$")


def marks_of(text):
    """(line, column, kind, argument, wanted) of each mark."""
    out, above = [], 0
    for number, line in enumerate(text.split("\n")):
        m = MARK.match(line)
        if m is None:
            above = number
            continue
        out.append((above, line.index("^"), m[1], m[2] or "", m[3].strip()))
    return out


def applied(text, edits):
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def offset(p):
        return starts[p["line"]] + p["character"]

    for e in sorted(edits, key=lambda e: -offset(e["range"]["start"])):
        text = text[:offset(e["range"]["start"])] + e["newText"] + text[offset(e["range"]["end"]):]
    return text


class File:
    def __init__(self, client, path):
        self.client, self.path, self.text = client, path, path.read_text()
        self.uri = uri(path)
        self.marks = marks_of(self.text)
        self.names = {wanted: (line, column) for line, column, kind, _, wanted in self.marks if kind == "here"}
        client.open(self.uri, self.text)
        self.mistakes = client.mistakes(self.uri, 1, settle=0.4)

    def ask(self, method, line, column, **more):
        return self.client.ask("textDocument/" + method,
                               {"textDocument": {"uri": self.uri}, "position": at(line, column), **more})

    def whole(self, method):
        return self.client.ask("textDocument/" + method, {
            "textDocument": {"uri": self.uri}, "range": {"start": at(0, 0), "end": at(10**6, 0)}})

    def places(self, wanted):
        return sorted(self.names[name] for name in wanted.split())

    def check(self, line, column, kind, argument, wanted):
        """What is wrong, or nothing."""
        return getattr(self, "check_" + kind)(line, column, argument, wanted)

    def check_here(self, *_):
        return None

    def check_hover(self, line, column, argument, wanted):
        answer = self.ask("hover", line, column)
        if argument == "none":
            return f"shows {answer}" if answer else None
        text = answer["contents"]["value"] if answer else ""
        if (wanted in text) == (argument == "not"):
            return f"shows {text!r}"

    def check_definition(self, line, column, argument, wanted):
        found = self.ask("definition", line, column)
        if argument == "in":
            return None if found and found[0]["uri"].endswith(wanted) else f"leads to {found}"
        start = found[0]["range"]["start"] if found else {}
        if not found or found[0]["uri"] != self.uri or (start["line"], start["character"]) != self.names[wanted]:
            return f"leads to {found}"

    def starts(self, ranges):
        return sorted((r["start"]["line"], r["start"]["character"]) for r in ranges)

    def check_highlight(self, line, column, argument, wanted):
        found = self.starts(h["range"] for h in self.ask("documentHighlight", line, column))
        return None if found == self.places(wanted) else f"finds {found}, not {self.places(wanted)}"

    def check_references(self, line, column, argument, wanted):
        found = self.ask("references", line, column, context={"includeDeclaration": True})
        if argument == "in":
            name, count = wanted.split()
            there = sum(r["uri"].endswith(name) for r in found)
            return None if there == int(count) else f"finds {there}"
        starts = self.starts(r["range"] for r in found if r["uri"] == self.uri)
        return None if starts == self.places(wanted) else f"finds {starts}, not {self.places(wanted)}"

    def check_rename(self, line, column, argument, wanted):
        name, _, refused = argument.partition(" ")
        try:
            found = self.ask("rename", line, column, newName=name)
        except Refused as e:
            return None if refused and wanted in str(e) else f"is refused: {e}"
        starts = self.starts(e["range"] for e in found["changes"].get(self.uri, []))
        if refused or starts != self.places(wanted):
            return f"changes {starts}, not {self.places(wanted)}"

    def check_complete(self, line, column, argument, wanted):
        items = {i["label"]: i for i in self.ask("completion", line, column)["items"]}
        if argument == "use":
            name, _, use = wanted.partition(" ")
            texts = [e["newText"] for e in items.get(name, {}).get("additionalTextEdits", [])]
            return None if any(use in t for t in texts) else f"brings {texts}"
        if argument == "text":
            texts = [i["textEdit"]["newText"] for i in items.values()]
            return None if wanted in (t.strip() for t in texts) else f"writes {texts}"
        there = [name for name in wanted.split() if name in items]
        if there != ([] if argument == "not" else wanted.split()):
            return f"offers {there} of these, and {sorted(items)[:40]}"

    def check_signature(self, line, column, argument, wanted):
        found = self.ask("signatureHelp", line, column)
        if not found:
            return None if argument == "none" else "shows nothing"
        one = found["signatures"][0]
        label, _, parameter = wanted.partition(" | ")
        active = found["activeParameter"]
        shown = one["parameters"][active]["label"] if active < len(one["parameters"]) else ""
        if argument == "none" or one["label"] != label or shown != parameter:
            return f"shows {one['label']!r} | {shown!r}"

    def check_action(self, line, column, argument, wanted):
        here = {"start": at(line, column), "end": at(line, column)}
        found = self.client.ask("textDocument/codeAction", {"textDocument": {"uri": self.uri}, "range": here,
                                                            "context": {"diagnostics": self.mistakes}})
        title, _, becomes = wanted.partition(" => ")
        titles = [a["title"] for a in found]
        if argument == "not":
            return f"offers {titles}" if any(title in t for t in titles) else None
        match = [a for a in found if title in a["title"]]
        if not match:
            return f"offers {titles}"
        after = applied(self.text, match[0]["edit"]["changes"][self.uri]).split("\n")
        if becomes and becomes not in (l.strip() for l in after):
            return f"makes {[l for l in after if l not in self.text.split(chr(10))]}"

    def check_hint(self, line, column, argument, wanted):
        there = [h["label"] for h in self.whole("inlayHint") if h["position"] == at(line, column)]
        return None if wanted in (t.strip() for t in there) else f"has {there}"

    def check_token(self, line, column, argument, wanted):
        legend = self.client.server["capabilities"]["semanticTokensProvider"]["legend"]["tokenTypes"]
        data = self.ask("semanticTokens/full", 0, 0)["data"]
        row = start = 0
        for i in range(0, len(data), 5):
            start = start + data[i + 1] if data[i] == 0 else data[i + 1]
            row += data[i]
            if (row, start) == (line, column):
                kind = legend[data[i + 3]]
                return None if kind == wanted else f"is {kind}"
        return "is no token"

    def check_mistake(self, line, column, argument, wanted):
        code, _, words = wanted.partition(" ")
        here = [d for d in self.mistakes if d["range"]["start"] == at(line, column)]
        if not any(d["code"] == code and words in d["message"] for d in here):
            return f"has {here}, of {[(d['code'], d['range']['start']) for d in self.mistakes]}"

    def check_related(self, line, column, argument, wanted):
        related = [r for d in self.mistakes for r in d.get("relatedInformation", [])]
        here = [r["message"] for r in related if r["location"]["range"]["start"] == at(line, column)]
        return None if any(wanted in m for m in here) else f"has {related}"

    def check_lens(self, line, column, argument, wanted):
        here = [l["command"]["title"] for l in self.ask("codeLens", 0, 0) if l["range"]["start"]["line"] == line]
        return None if wanted in here else f"has {here}"

    def check_symbol(self, line, column, argument, wanted):
        def flat(symbols):
            for s in symbols:
                yield s
                yield from flat(s.get("children", []))
        here = [s["name"] for s in flat(self.ask("documentSymbol", 0, 0)) if s["selectionRange"]["start"] == at(line, column)]
        return None if wanted in here else f"has {here}"

    def check_fold(self, line, column, argument, wanted):
        here = [f["endLine"] - f["startLine"] for f in self.ask("foldingRange", 0, 0) if f["startLine"] == line]
        return None if int(wanted) in here else f"folds {here}"

    def check_all(self):
        complaints = []
        for line, column, kind, argument, wanted in self.marks:
            wrong = self.check(line, column, kind, argument, wanted)
            if wrong:
                complaints.append(f"{self.path.name}:{line + 1}:{column + 1}: {kind} {argument}: {wanted}: {wrong}")
        marked = sum(kind == "mistake" for _, _, kind, _, _ in self.marks)
        if marked != len(self.mistakes):
            complaints.append(f"{self.path.name}: {marked} mistakes are marked, {len(self.mistakes)} reported: "
                              f"{[(d['code'], d['range']['start'], d['message']) for d in self.mistakes]}")
        return complaints


def self_test(ein):
    """A wrong wish is noticed, of every kind."""
    path = pathlib.Path(__file__).parent / "first.ein"
    client = Client(ein, path.parent)
    file = File(client, path)
    for line, column, kind, argument, wanted in file.marks:
        if kind in ("here", "references", "highlight") or argument == "none":
            continue
        wrong = "99" if kind == "fold" else wanted + "?"
        if kind == "definition":
            file.names[wrong] = (0, 0)
        if argument != "not" and kind != "rename" and file.check(line, column, kind, argument, wrong) is None:
            sys.exit(f"self-test: {kind} {argument}: {wrong!r} should be noticed")
    client.close()


def main():
    ein, *names = sys.argv[1:]
    here = pathlib.Path(__file__).parent
    self_test(ein)
    complaints, count = [], 0
    client = Client(ein, here)
    for path in [pathlib.Path(n) for n in names] or sorted(here.glob("*.ein")):
        file = File(client, path)
        complaints += file.check_all()
        count += len(file.marks)
        client.tell("textDocument/didClose", {"textDocument": {"uri": file.uri}})
    client.close()
    print("\n".join(complaints) if complaints else f"{count} marks: fine")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
