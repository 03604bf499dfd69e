"""`ein explore`: who gets an answer, and what it is. Usage: test_explore.py EIN (the page itself: tests/web/page.mjs)"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

EIN = str(pathlib.Path(sys.argv[1]).resolve())
PAGE = "<html><head><title>page</title></head><body></body></html>"
PROGRAM = 'use half::half;\nlet d[i] = load("data.csv");\nprint(half(sum[i](d[i])));\n'
ENDLESS = "print(sum[i in 0..10000000, j in 0..10000000](sin((i * j) as f32)));\n"


def children(pid):
    out = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(word) for word in out.stdout.split()]


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Explore(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.place.name)
        self.write("half.ein", "pub fn half(x: f32) -> f32 { 0.5 * x }\n")
        self.write("data.csv", "1.5\n2.5\n")
        self.write("mine.ein", PROGRAM)
        self.write("page.html", PAGE)
        self.server = subprocess.Popen([EIN, "explore", str(self.folder / "mine.ein"), "--page", str(self.folder / "page.html")],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.server.stdout.readline().strip()
        self.root, self.token = self.url.rstrip("/").rsplit("/", 1)

    def tearDown(self):
        self.server.kill()
        self.server.wait()
        self.server.stdout.close()
        self.place.cleanup()

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def fetch(self, path, body=None, token=True, **headers):
        if token:
            headers["X-Ein-Token"] = self.token
        request = urllib.request.Request(self.root + path, data=None if body is None else body.encode(), headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            with e:
                return e.code, e.read().decode()

    def ask(self, lane=0, **request):
        status, text = self.fetch(f"/answer?lane={lane}", json.dumps(request))
        self.assertEqual(status, 200)
        return json.loads(text)

    def test_the_page_knows_where_to_ask(self):
        status, page = self.fetch(f"/{self.token}/", token=False)
        self.assertEqual(status, 200)
        self.assertIn(f'token: "{self.token}", name: "mine.ein"', page)
        self.assertEqual(self.fetch("/", token=False)[0], 403)

    def test_programs_run_with_what_is_beside_them(self):
        self.assertEqual(self.ask(verb="run", source=PROGRAM)["stdout"], "2.0\n")
        self.assertEqual(self.ask(verb="version")["backend"], "native")
        # Not with files from elsewhere.
        outside = self.ask(verb="run", source='let a = load("/etc/hostname.csv");\nprint(a);\n')
        self.assertEqual(outside["diagnostics"][0]["code"], "E0811")

    def test_nobody_else_is_answered(self):
        self.assertEqual(self.fetch("/answer", "{}", token=False)[0], 403)
        self.assertEqual(self.fetch("/answer", "{}", token=False, **{"X-Ein-Token": "0" * 32})[0], 403)
        self.assertEqual(self.fetch("/answer", "{}", Host="example.com")[0], 403)
        self.assertEqual(self.fetch("/answer", "{}", Origin="http://example.com")[0], 403)
        self.assertEqual(self.fetch("/answer", "{}", Origin=self.root)[0], 200)
        self.assertEqual(self.fetch("/elsewhere")[0], 404)

    def test_the_file_is_followed(self):
        first = json.loads(self.fetch("/file?after=")[1])
        self.assertEqual(first["text"], PROGRAM)
        self.write("new.ein", "print(7)\n")
        os.replace(self.folder / "new.ein", self.folder / "mine.ein")  # as editors do
        second = json.loads(self.fetch(f"/file?after={first['version']}")[1])
        self.assertEqual(second["text"], "print(7)\n")

    def test_what_runs_can_be_stopped_and_the_other_lane_answers(self):
        self.ask(lane=1, verb="version")
        runs = subprocess.Popen([sys.executable, "-c", f"""
import urllib.request
r = urllib.request.Request({self.root + "/answer?lane=1"!r}, data={json.dumps({"verb": "run", "source": ENDLESS}).encode()!r},
                           headers={{"X-Ein-Token": {self.token!r}}})
print(urllib.request.urlopen(r, timeout=50).read().decode())"""], stdout=subprocess.PIPE, text=True)
        time.sleep(1)
        self.assertEqual(self.ask(lane=0, verb="run", source="print(1)")["stdout"], "1\n")
        self.fetch("/stop?lane=1", "")
        answer = json.loads(runs.communicate(timeout=20)[0])
        self.assertEqual(answer["stopped"], "user")
        self.assertEqual(self.ask(lane=1, verb="run", source="print(2)")["stdout"], "2\n")

    def test_no_process_stays_behind(self):
        self.ask(verb="version")
        below = children(self.server.pid)
        self.assertTrue(below)
        subprocess.Popen([sys.executable, "-c", f"""
import urllib.request
r = urllib.request.Request({self.root + "/answer?lane=0"!r}, data={json.dumps({"verb": "run", "source": ENDLESS}).encode()!r},
                           headers={{"X-Ein-Token": {self.token!r}}})
try: urllib.request.urlopen(r, timeout=50).read()
except Exception: pass"""])
        time.sleep(0.7)
        self.server.send_signal(signal.SIGKILL)
        end = time.time() + 10
        while any(alive(pid) for pid in below) and time.time() < end:
            time.sleep(0.1)
        self.assertFalse([pid for pid in below if alive(pid)])


class Refused(unittest.TestCase):
    def explore(self, *words):
        return subprocess.run([EIN, "explore", *words], capture_output=True, text=True, timeout=30)

    def test_a_page_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as place:
            program = pathlib.Path(place, "a.ein")
            program.write_text("print(1)\n")
            alone = pathlib.Path(place, "ein")  # a binary without a page beside it
            os.link(EIN, alone) if os.stat(EIN).st_dev == os.stat(place).st_dev else alone.write_bytes(pathlib.Path(EIN).read_bytes())
            alone.chmod(0o755)
            done = subprocess.run([alone, "explore", program], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2)
            self.assertIn("make playground", done.stderr)
            done = self.explore(str(program), "--page", str(program))
            self.assertEqual(done.returncode, 2)
            self.assertIn("is not the page of the playground", done.stderr)
            self.assertIn("cannot read", self.explore(str(program), "--page", place + "/none").stderr)

    def test_a_file_that_is_not_there(self):
        done = self.explore("/nowhere/a.ein")
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot read `/nowhere/a.ein`", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
