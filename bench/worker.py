"""One peer in a process of its own: `worker.py MODULE THREADS`, then one JSON object per line in and out.

    {"do": "open", "kind": …, "case": …, "inputs": {name: file}, "outputs": [file, …], "quick": …}
        -> {"first": seconds of the first call, with whatever it compiles}, or {"missing": why}
    {"do": "weigh", "kind": …}  -> {"memory": bytes that a call holds at most, its inputs included}; needs c/held.c preloaded
    {"do": "time", "kind": …, "repeat": n}  -> {"runs": [seconds, …]}
    {"do": "close"}  -> {}: releases what was opened
"""

import contextlib
import ctypes
import gc
import importlib
import json
import sys
import time
import traceback

import numpy


def main():
    answers = sys.stdout
    sys.stdout = sys.stderr  # whatever a library prints is not an answer
    peer = importlib.import_module(f"peers_{sys.argv[1]}")
    peer.prepare(int(sys.argv[2]))
    calls, given = {}, {}

    def open_case(ask):
        made = peer.case(ask["kind"], ask["case"])
        if made is None:
            return {"missing": "no such workload"}
        if peer.too_slow(ask["case"], ask["quick"]):
            return {"missing": "too slow"}
        inputs = {name: peer.load(numpy.load(file)) for name, file in ask["inputs"].items()}
        begin = time.perf_counter()
        values = made(**inputs)
        first = time.perf_counter() - begin
        for file, value in zip(ask["outputs"], values, strict=True):
            numpy.save(file, getattr(peer, "to_numpy", numpy.asarray)(value))
        calls[ask["kind"]] = lambda: made(**inputs)
        given[ask["kind"]] = sum(numpy.load(file, mmap_mode="r").nbytes for file in ask["inputs"].values())
        return {"first": first}

    def measure(ask):
        runs, call = [], calls[ask["kind"]]
        for _ in range(ask["repeat"]):
            begin = time.perf_counter()
            values = call()
            runs.append(time.perf_counter() - begin)
            del values
        return {"runs": runs}

    def weigh(ask):
        allocator = ctypes.CDLL(None)
        allocator.held_now.restype = allocator.held_most.restype = ctypes.c_longlong
        gc.collect()
        before = allocator.held_now()
        allocator.held_forget()
        calls[ask["kind"]]()
        return {"memory": given[ask["kind"]] + allocator.held_most() - before}

    def close(_):
        calls.clear()
        return {}

    print(json.dumps({"ready": peer.KINDS}), file=answers, flush=True)
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            answer = {"open": open_case, "time": measure, "weigh": weigh, "close": close}[ask["do"]](ask)
        except Exception as e:  # the table says so and goes on
            traceback.print_exc()
            answer = {"failed": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
    main()
