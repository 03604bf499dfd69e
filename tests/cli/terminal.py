"""A program on a terminal of its own, for tests that type: what it is sent, and what appears."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]")


class Terminal:
    def __init__(self, command, columns=100, cwd=None, **environment):
        size = struct.pack("HHHH", 30, columns, 0, 0)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd or ".")
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            os.execve(command[0], command, {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment})
        self.seen = ""  # what appeared since the last `expect`

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        if self.pid is not None:
            os.waitpid(self.pid, 0)

    def resize(self, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def _read(self, seconds):
        """False: nothing more will appear."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            more = os.read(self.fd, 65536)
        except OSError:
            more = b""
        self.seen += more.decode(errors="replace")
        return bool(more)

    def expect(self, text, seconds=20):
        """Waits until the text has appeared, and gives everything up to there, without the codes of the terminal."""
        end = time.monotonic() + seconds
        while True:
            plain = ESCAPES.sub("", self.seen)
            at = plain.find(text)
            if at >= 0:
                self.seen = plain[at + len(text):]
                return plain[:at + len(text)].replace("\r\n", "\n")
            if time.monotonic() > end or not self._read(0.2):
                raise AssertionError(f"{text!r} did not appear after {plain!r}")

    def enter(self, line):
        """Types a line, and gives what appears until the next prompt."""
        self.type(line + "\n")
        return self.expect("\n> ")

    def status(self, seconds=20):
        """The exit status of the program, which is about to end."""
        end = time.monotonic() + seconds
        while self._read(0.1):
            if time.monotonic() > end:
                raise AssertionError(f"the program goes on: {self.seen!r}")
        pid, status = os.waitpid(self.pid, 0)
        self.pid = None
        return os.waitstatus_to_exitcode(status)
