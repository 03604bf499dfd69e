"""A client of `ein lsp` for tests: messages over pipes, and the diagnostics that came in between."""

import contextlib
import json
import pathlib
import queue
import subprocess
import threading
import time


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code = error["code"]


class Client:
    def __init__(self, ein, folder=None, encodings=None, options=None, log=None):
        self.process = subprocess.Popen([ein, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=log or subprocess.DEVNULL)
        self.messages, self.answers, self.notes = queue.Queue(), {}, []
        self.diagnostics = {}  # by URI: the last ones, with their version
        self.last, self.holds = 0, False
        threading.Thread(target=self._read, daemon=True).start()
        general = {"positionEncodings": encodings} if encodings else {}
        self.server = self.ask("initialize", {
            "processId": None, "rootUri": None, "capabilities": {"general": general},
            "workspaceFolders": [{"uri": uri(folder), "name": "test"}] if folder else [],
            "initializationOptions": options or {}})
        self.tell("initialized", {})

    def _read(self):
        out = self.process.stdout
        while True:
            length = None
            while (line := out.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if length is None:
                self.messages.put(None)
                return
            self.messages.put(json.loads(out.read(length)))

    def raw(self, data):
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        if not self.holds:
            self.process.stdin.flush()

    @contextlib.contextmanager
    def together(self):
        """What is sent inside leaves in one go."""
        self.holds = True
        yield
        self.holds = False
        self.process.stdin.flush()

    def send(self, message):
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def begin(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        return self.last

    def take(self, timeout):
        """Handles one message; False when none came."""
        try:
            message = self.messages.get(timeout=timeout)
        except queue.Empty:
            return False
        if message is None:
            raise EOFError(f"the server has ended with {self.process.wait()}")
        if "id" in message and "method" not in message:
            self.answers[message["id"]] = message
        elif message.get("method") == "textDocument/publishDiagnostics":
            self.diagnostics[message["params"]["uri"]] = message["params"]
        else:
            self.notes.append(message)
        return True

    def wait(self, number, timeout=60):
        end = time.monotonic() + timeout
        while number not in self.answers:
            if not self.take(max(0.0, end - time.monotonic())):
                raise TimeoutError(f"no answer to request {number}")
        answer = self.answers.pop(number)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def ask(self, method, params, timeout=60):
        return self.wait(self.begin(method, params), timeout)

    def open(self, where, text, version=1):
        self.tell("textDocument/didOpen", {"textDocument": {"uri": where, "languageId": "ein", "version": version, "text": text}})

    def change(self, where, version, changes):
        self.tell("textDocument/didChange", {"textDocument": {"uri": where, "version": version}, "contentChanges": changes})

    def mistakes(self, where, version, settle=0.0, timeout=60):
        """The diagnostics of this version; of those that come within `settle` seconds, the last."""
        end = time.monotonic() + timeout
        while self.diagnostics.get(where, {}).get("version") != version:
            if not self.take(max(0.0, end - time.monotonic())):
                raise TimeoutError("no diagnostics")
        quiet = time.monotonic() + settle
        while time.monotonic() < quiet:
            self.take(max(0.0, quiet - time.monotonic()))
        return self.diagnostics[where]["diagnostics"]

    def close(self):
        try:
            self.ask("shutdown", None)
            self.tell("exit", None)
            status = self.process.wait(timeout=20)
        finally:
            self.process.kill()
        if status != 0:
            raise RuntimeError(f"the server ended with {status}")


def uri(path):
    return pathlib.Path(path).resolve().as_uri()


def at(line, character):
    return {"line": line, "character": character}
