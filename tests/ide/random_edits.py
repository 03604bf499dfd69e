"""Random edits of programs through the language server: it never ends, every request gets an answer, and after the last edit its
answers equal those of a server that has seen nothing else. Usage: random_edits.py EIN [--count N] [--seed S]

Edits are ranges: single characters, words, cuts anywhere, lines that move, wide characters (two units of UTF-16), broken UTF-8 and
ranges beyond the text. Between them come requests, some cancelled at once, some for places that do not exist, some for other documents."""

import argparse
import json
import pathlib
import random
import sys

from client import Client, Refused, at, uri

PIECES = ["let ", "x", "[", "]", "(", ")", "{", "}", ";", "=", " = @loss / @W;", "sum[k](", "\n", "\"", "{x", "// ", "𝛼", "é", "日本", "👩‍👩‍👧", "fn f(x) { x }",
          "let y[i] = x[i];\n", " where i > 0", "use std::math::{", "..", "@", "\t", "\r\n", "1.0e", "as f32", "match x { 0 => 1 }", "#[checkpoint]", "let T = 4;", "\x00", "\ud83d"]
REQUESTS = ["hover", "definition", "documentHighlight", "completion", "signatureHelp", "codeAction", "inlayHint", "documentSymbol",
            "foldingRange", "semanticTokens/full", "codeLens", "formatting", "references", "rename", "prepareRename"]
REFUSALS = {-32800, -32801, -32803}  # cancelled, modified, cannot be renamed


def units(text):
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class Text:
    """What the document should hold, computed without the server."""

    def __init__(self, text):
        self.text = text

    def lines(self):
        out, start, i = [], 0, 0
        while i < len(self.text):
            c = self.text[i]
            if c == "\r" and self.text[i + 1:i + 2] == "\n":
                i += 1
            if c in "\r\n":
                out.append((start, i + 1))
                start = i + 1
            i += 1
        return out + [(start, len(self.text))]

    def position(self, offset):
        lines = self.lines()
        row = max(n for n, (start, _) in enumerate(lines) if start <= offset)
        return at(row, units(self.text[lines[row][0]:offset]))

    def edit(self, rng):
        """An edit of the protocol, done here too."""
        kind = rng.random()
        if kind < 0.02:
            self.text = self.text[:rng.randrange(len(self.text) + 1)]
            return {"text": self.text}
        begin = rng.randrange(len(self.text) + 1)
        if kind < 0.55:
            end, new = begin, rng.choice(PIECES)
        elif kind < 0.85:
            end, new = min(len(self.text), begin + rng.choice([1, 1, 1, 2, 5, 30])), rng.choice(["", rng.choice(PIECES)])
        else:  # something from elsewhere in the text
            end, source = begin, rng.randrange(len(self.text) + 1)
            new = self.text[source:source + rng.randrange(80)]
        new = new.replace("\ud83d", "�") if rng.random() < 0.5 else new
        # A place between \r and \n is no place.
        for which in (begin, end):
            if self.text[which - 1:which + 1] == "\r\n":
                begin = end = len(self.text)
        start, stop = self.position(begin), self.position(end)
        if end == len(self.text) and rng.random() < 0.3:
            stop = at(10**9, 7)  # beyond the end
        self.text = self.text[:begin] + new + self.text[end:]
        return {"range": {"start": start, "end": stop}, "text": new}


def sendable(text):
    """As JSON carries it: half a pair becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def parameters(rng, where, method, text):
    rows = text.count("\n") + 2
    place = at(rng.randrange(rows + 2), rng.randrange(60))
    return {"textDocument": {"uri": where}, "position": place, "newName": rng.choice(["renamed", "loss", "let", "𝛼"]),
            "range": {"start": at(0, 0) if method == "inlayHint" else place, "end": at(rows, 0) if method == "inlayHint" else place},
            "context": {"diagnostics": [], "includeDeclaration": True}, "options": {"tabSize": 4, "insertSpaces": True}}


def answers(client, where, text, seed):
    """What a server says of a document, in an order that does not matter."""
    rng = random.Random(seed)
    out = []
    for method in REQUESTS * 2:
        p = parameters(rng, where, method, text)
        try:
            out.append((method, client.ask("textDocument/" + method, p)))
        except Refused as e:
            out.append((method, e.code, str(e)))
    return out


def session(ein, program, edits, seed):
    rng = random.Random(seed)
    where = "file:///nowhere/" + program.name
    text, version = Text(program.read_text().replace("\r", "")), 1
    client = Client(ein)
    client.open(where, text.text)
    waiting = []
    for _ in range(edits):
        version += 1
        change = text.edit(rng)
        body = json.dumps({"jsonrpc": "2.0", "method": "textDocument/didChange",
                           "params": {"textDocument": {"uri": where, "version": version}, "contentChanges": [change]}}, ensure_ascii=False)
        text.text = sendable(text.text)
        data = body.encode("utf-8", "surrogatepass")  # half a pair is broken UTF-8
        if b"\xed\xa0\xbd" in data:
            # Three broken bytes are three characters for the server: the whole text says what is meant.
            client.raw(data)
            version += 1
            client.change(where, version, [{"text": text.text}])
        else:
            client.raw(data)
        while rng.random() < 0.5:
            method = rng.choice(REQUESTS)
            number = client.begin("textDocument/" + method, parameters(rng, where, method, text.text))
            waiting.append(number)
            if rng.random() < 0.2:
                client.tell("$/cancelRequest", {"id": number})
        if rng.random() < 0.05:
            waiting.append(client.begin("textDocument/hover", parameters(rng, "file:///not/open.ein", "hover", "")))
        if rng.random() < 0.02:
            client.raw(b"{ no JSON \xff")
        if len(waiting) > 20:
            finish(client, waiting)
    finish(client, waiting)
    final = client.mistakes(where, version, settle=0.6)
    said = answers(client, where, text.text, seed)
    logged = [n["params"]["message"] for n in client.notes if n.get("method") == "window/logMessage"]
    client.close()
    fresh = Client(ein)
    fresh.open(where, text.text, version)
    wanted = fresh.mistakes(where, version, settle=0.6)
    again = answers(fresh, where, text.text, seed)
    fresh.close()
    complaints = [f"the server logged: {line}" for line in logged]
    if final != wanted:
        complaints.append(f"diagnostics {final} where a fresh server has {wanted}")
    complaints += [f"{a} where a fresh server has {b}" for a, b in zip(said, again) if a != b]
    if complaints:
        found = pathlib.Path(f"random_edits_{seed}.txt")
        found.write_bytes(text.text.encode("utf-8", "surrogatepass"))
        complaints.append(f"the text is in {found.resolve()}")
    return complaints


def finish(client, waiting):
    for number in waiting:
        try:
            client.wait(number)
        except Refused as e:
            if e.code not in REFUSALS | {-32602}:
                raise
    waiting.clear()


def self_test():
    text = Text("a𝛼b\r\nc")
    assert text.position(3) == at(0, 4) and text.position(5) == at(1, 0), "positions are counted in UTF-16"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ein")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    self_test()
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    programs = sorted((root / "tests" / "ide").glob("*.ein")) + sorted((root / "examples").glob("*.ein"))
    each, done, complaints = 50, 0, []
    while done < options.count and not complaints:
        seed = options.seed * 1_000_003 + done
        program = programs[random.Random(seed).randrange(len(programs))]
        complaints = [f"{program.name}, seed {seed}: {c}" for c in session(options.ein, program, min(each, options.count - done), seed)]
        done += each
    print("\n".join(complaints) if complaints else f"{min(done, options.count)} edits: fine")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
