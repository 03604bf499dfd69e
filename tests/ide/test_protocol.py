"""The language server as a process: the order of requests, cancels, encodings, modules that are not saved, commands, damage.
Usage: test_protocol.py EIN [TEST…]"""

import json
import pathlib
import sys
import tempfile
import time
import unittest

from client import Client, Refused, at, uri

EIN = None
SLOW = "\n".join(f"let a{i} = {i}.0;" for i in range(20000))


class Server(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()
        self.clients = []

    def enterContext(self, manager):  # new in Python 3.11
        out = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return out

    def client(self, **options):
        client = Client(EIN, self.folder, **options)
        self.addCleanup(client.process.stdout.close)
        self.addCleanup(client.process.stdin.close)
        self.addCleanup(client.process.wait)
        self.addCleanup(client.process.kill)
        return client

    def file(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return uri(path)

    def hover(self, client, where, line, column):
        answer = client.ask("textDocument/hover", {"textDocument": {"uri": where}, "position": at(line, column)})
        return answer["contents"]["value"] if answer else ""

    def refusal(self, f, *arguments):
        with self.assertRaises(Refused) as caught:
            f(*arguments)
        return caught.exception.code

    def test_half_a_character(self):
        """An edit that cuts a pair of UTF-16 in two: JSON has half of it as an escape."""
        client = self.client()
        where = self.file("a.ein", "")
        client.open(where, 'let s = "\ud83d";\nlet t = u;\n')
        self.assertEqual([d["code"] for d in client.mistakes(where, 1)], ["E0201"])
        client.change(where, 2, [{"range": {"start": at(1, 8), "end": at(1, 9)}, "text": '"\ude00"'}])
        self.assertEqual(client.mistakes(where, 2), [])

    def test_order(self):
        client = self.client()
        self.assertEqual(self.refusal(client.ask, "initialize", {}), -32600)
        self.assertEqual(self.refusal(client.ask, "textDocument/unknown", {}), -32601)
        self.assertEqual(self.refusal(client.ask, "textDocument/hover", {}), -32602)
        client.ask("shutdown", None)
        self.assertEqual(self.refusal(client.ask, "textDocument/hover", {}), -32600)
        client.tell("exit", None)
        self.assertEqual(client.process.wait(timeout=20), 0)

    def test_before_initialize(self):
        import subprocess
        body = b'{"jsonrpc":"2.0","id":1,"method":"textDocument/hover","params":{}}'
        done = subprocess.run([EIN, "lsp"], input=b"Content-Length: %d\r\n\r\n%s" % (len(body), body), capture_output=True, timeout=60)
        self.assertIn(b"-32002", done.stdout)
        self.assertEqual(done.returncode, 1)  # the client left without a word

    def test_damage(self):
        client = self.client()
        client.raw(b"\xff{")
        client.raw(b"[1, 2]")
        client.process.stdin.write(b"Nonsense: 7\r\n\r\n")
        client.send({"method": "textDocument/didChange", "params": {"textDocument": {}}})
        client.send({"method": "textDocument/didOpen", "params": 7})
        where = "file:///nowhere/a.ein"
        client.open(where, "let x = 1.5;\nlet y = x;\n")
        self.assertIn("y: f32", self.hover(client, where, 1, 4))
        # Bytes that are no UTF-8 become characters that are.
        body = json.dumps({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
            "textDocument": {"uri": where, "version": 2}, "contentChanges": [{"text": "let z = 1.5; // ?\n"}]}}).encode()
        client.raw(body.replace(b"?", b"\xff\xfe"))
        self.assertIn("z: f32", self.hover(client, where, 0, 4))
        client.close()

    def test_cancel_and_modify(self):
        client = self.client()
        where, ask = "file:///nowhere/slow.ein", {"position": at(3, 4)}
        with client.together():
            client.open(where, SLOW)
            first = client.begin("textDocument/hover", {**ask, "textDocument": {"uri": where}})
            client.tell("$/cancelRequest", {"id": first})
        self.assertEqual(self.refusal(client.wait, first), -32800)
        where = "file:///nowhere/slow_too.ein"
        with client.together():
            client.open(where, SLOW)
            second = client.begin("textDocument/hover", {**ask, "textDocument": {"uri": where}})
            client.change(where, 2, [{"text": "let x = 1.5;\n"}])
        self.assertEqual(self.refusal(client.wait, second), -32801)
        self.assertIn("x: f32", self.hover(client, where, 0, 4))
        client.close()

    def test_encodings(self):
        text = 'let a = "𝛼𝛼"; let b = 1.5;\n'
        for encodings, column in ((None, 20), (["utf-8", "utf-16"], 24)):
            client = self.client(encodings=encodings)
            self.assertEqual(client.server["capabilities"]["positionEncoding"], encodings[0] if encodings else "utf-16")
            client.open("file:///nowhere/a.ein", text)
            self.assertIn("b: f32", self.hover(client, "file:///nowhere/a.ein", 0, column))
            self.assertNotIn("b: f32", self.hover(client, "file:///nowhere/a.ein", 0, column - 3))
            client.close()

    def test_modules_that_are_not_saved(self):
        module = self.file("lib.ein", "pub fn f(x) {\n    x\n}\n")
        main = self.file("main.ein", "use lib::{g};\nlet y = g(1.5);\n")
        client = self.client()
        client.open(main, (self.folder / "main.ein").read_text())
        self.assertEqual([d["code"] for d in client.mistakes(main, 1)], ["E0212"])
        client.open(module, "pub fn g(x) {\n    x\n}\n")
        client.mistakes(module, 1)
        end = time.monotonic() + 20
        while client.diagnostics[main]["diagnostics"] and time.monotonic() < end:
            client.take(0.1)
        self.assertEqual(client.diagnostics[main]["diagnostics"], [])
        client.close()

    def test_rename_through_modules(self):
        module = self.file("lib.ein", "pub fn f(x) {\n    x\n}\n")
        main = self.file("main.ein", "use lib::{f};\nlet y = f(1.5);\n")
        other = self.file("other.ein", "use lib::*;\nlet z = f(2.5);\n")
        taken = self.file("taken.ein", "use lib::{f};\nfn h(x) {\n    x\n}\nlet z = f(2.5) + h(1.0);\n")
        client = self.client()
        client.open(module, (self.folder / "lib.ein").read_text())
        ask = {"textDocument": {"uri": module}, "position": at(0, 7)}
        changes = client.ask("textDocument/rename", {**ask, "newName": "g"})["changes"]
        self.assertEqual({u: len(e) for u, e in changes.items()}, {module: 1, main: 2, other: 1, taken: 2})
        self.assertEqual(self.refusal(client.ask, "textDocument/rename", {**ask, "newName": "h"}), -32803)
        client.close()

    def test_commands(self):
        where = self.file("a.ein", 'print("hello");\n')
        client = self.client(options={"showsOutput": True})
        client.open(where, 'print("hello");\n')
        run = {"command": "ein.run", "arguments": [where]}
        self.assertEqual(client.ask("workspace/executeCommand", run), {"status": 0, "output": "hello\n"})
        client.change(where, 2, [{"text": 'print("other");\n'}])
        self.assertEqual(self.refusal(client.ask, "workspace/executeCommand", run), -32803)
        self.assertEqual(self.refusal(client.ask, "workspace/executeCommand", {"command": "ein.fly", "arguments": [where]}), -32602)
        client.close()

    def test_full_after_quick(self):
        """A derivative that has none is found by the full analysis alone."""
        text = "let x: f32;\nlet y = x * x;\nlet d = @y / @x;\ntest \"wrong\" {\n    assert(nothing == 1.0);\n}\n"
        where = "file:///nowhere/a.ein"
        client = self.client()
        client.open(where, text)
        self.assertEqual(client.mistakes(where, 1), [])
        self.assertEqual([d["code"] for d in client.mistakes(where, 1, settle=2.0)], ["E0201"])
        client.close()

    def test_what_was_seen_before(self):
        """Messages about a text do not depend on the names that the server met in others."""
        where = "file:///nowhere/now.ein"
        text = "use std::plot::lining;\nlet b2 = 1.0;\nlet w1 = 2.0;\nlet x = b1 + w;\n"

        def messages(*before):
            client = self.client()
            for i, other in enumerate(before):
                client.open(f"file:///nowhere/before{i}.ein", other)
                client.mistakes(f"file:///nowhere/before{i}.ein", 1)
            client.open(where, text)
            out = [d["message"] for d in client.mistakes(where, 1)]
            client.close()
            return out

        fresh = messages()
        self.assertIn("did you mean `b2`?", "".join(fresh))
        self.assertEqual(messages("let w1 = 1.0;\nlet image = heatmap(line_over, line, plot);\n"), fresh)

    def test_formatting(self):
        where = "file:///nowhere/a.ein"
        client = self.client()
        client.open(where, "let  x=1.5;\nlet y = 2.5;\n")
        edits = client.ask("textDocument/formatting", {"textDocument": {"uri": where}, "options": {}})
        self.assertEqual(edits, [{"range": {"start": at(0, 0), "end": at(1, 0)}, "newText": "let x = 1.5;\n"}])
        client.change(where, 2, [{"text": "let x = ;"}])
        self.assertEqual(client.ask("textDocument/formatting", {"textDocument": {"uri": where}, "options": {}}), [])
        client.close()


if __name__ == "__main__":
    EIN = sys.argv.pop(1)
    unittest.main()
