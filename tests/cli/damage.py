"""Damaged files of every format: a message, or exactly the values that an independent reader gives; never a crash and
never other numbers. Usage: damage.py EIN [--count N] [--seed S] [--jobs J]

Each round damages one file by cutting it short, flipping bits, changing, adding, taking out or doubling bytes, and gives
it to `ein run --in`. What `ein` accepts is compared, cell by cell, with NumPy (npy, npz) or with the readers below, which
share nothing with the compiler. Refusing is always allowed for a damaged file; whole files must be accepted."""

import argparse
import collections
import concurrent.futures
import io
import json
import math
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import png  # noqa: E402

IDX = {0x08: "u1", 0x09: "i1", 0x0b: "i2", 0x0c: "i4", 0x0d: "f4", 0x0e: "f8"}
SAFE = {"BOOL": "?", "I8": "i1", "U8": "u1", "I16": "i2", "I32": "i4", "I64": "i8", "F16": "f2", "F32": "f4", "F64": "f8"}
NAMES = {"b1": "bool", "i1": "i8", "u1": "u8", "i2": "i16", "i4": "i32", "i8": "i64", "f2": "f16", "f4": "f32", "f8": "f64"}


BLANK = ("", "NA", "N/A", "n/a", "null", "NULL", "None")


class Refused(Exception):
    pass


# The independent readers: bytes to an array, or an exception.


def read_npy(raw, path):
    return numpy.load(path, allow_pickle=False)


def read_npz(raw, path):
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.removesuffix(".npy") == "x"] or archive.namelist()
        if len(names) != 1:
            raise Refused("members")
        whole = archive.read(names[0])  # looks at the checksum
    return numpy.load(io.BytesIO(whole), allow_pickle=False)


def read_safetensors(raw, path):
    size = struct.unpack("<Q", raw[:8])[0]
    if size > len(raw) - 8:
        raise Refused("truncated")

    def once(pairs):
        if len({k for k, _ in pairs}) != len(pairs):
            raise Refused("a key twice")
        return dict(pairs)
    header = json.loads(raw[8:8 + size].decode(), object_pairs_hook=once)
    data, at = raw[8 + size:], 0
    tensors = {k: v for k, v in header.items() if k != "__metadata__"}
    for entry in sorted(tensors.values(), key=lambda e: e["data_offsets"]):
        begin, end = entry["data_offsets"]
        if begin != at:
            raise Refused("a hole or an overlap")
        at = end
    if at != len(data):
        raise Refused("bytes of no tensor")
    entry = tensors[next(iter(tensors)) if len(tensors) == 1 else "x"]
    begin, end = entry["data_offsets"]
    return numpy.frombuffer(data[begin:end], SAFE[entry["dtype"]]).reshape(entry["shape"])


def read_idx(raw, path):
    if raw[:2] != b"\0\0":
        raise Refused("no IDX")
    rank = raw[3]
    shape = struct.unpack(f">{rank}I", raw[4:4 + 4 * rank])
    code = numpy.dtype(">" + IDX[raw[2]])
    if len(raw) - 4 - 4 * rank != math.prod(shape) * code.itemsize:
        raise Refused("size")
    return numpy.frombuffer(raw[4 + 4 * rank:], code).reshape(shape).astype(code.newbyteorder("="))


def read_pnm(raw, path):
    space = rb"(?:[ \t-\r]|#[^\n]*\n)"
    match = re.match(rb"P([2356])%s*(\d+)%s+(\d+)%s+(\d+)(.)" % (space, space, space), raw, re.S)
    if not match or not match.group(5).isspace():
        raise Refused("header")
    kind, width, height, white = (int(match.group(k)) for k in range(1, 5))
    if not 0 < white < 256:
        raise Refused("white")
    shape = (height, width, 3) if kind in (3, 6) else (height, width)
    body = raw[match.end():]
    if kind < 4:
        samples = [int(w) for w in re.sub(rb"#[^\n]*(\n|$)", b"\n", body).split()]
    else:
        samples = list(body[:-1] if len(body) == math.prod(shape) + 1 and body[-1:] == b"\n" else body)
    if len(samples) != math.prod(shape) or any(s > white or s < 0 for s in samples):
        raise Refused("samples")
    return numpy.array([(s * 510 + white) // (2 * white) for s in samples], "u1").reshape(shape)


def read_png(raw, path):
    return png.read(raw)


def csv_rows(text):
    """Rows of cells: a tab or a semicolon in the first line separates, else a comma; quotes as in RFC 4180."""
    plain = re.sub(r'"[^"]*("|$)', "", text).lstrip(" \t\r\n").split("\n")[0]
    mark = "\t" if "\t" in plain else ";" if ";" in plain else ","
    rows, row, at = [], [], 0
    while at <= len(text):
        quoted = re.compile(r'[ \t]*"((?:[^"]|"")*)"[ \t\r]*(?=[\n%s]|$(?![\s\S]))' % re.escape(mark)).match(text, at)
        if quoted and not (mark == "\t" and "\t" in text[at:quoted.start(1)]):
            row.append(quoted.group(1).replace('""', '"'))
            at = quoted.end()
        else:
            found = re.compile(r"[^\n%s]*" % re.escape(mark)).match(text, at)
            if found.group().lstrip(" \t").startswith('"'):
                raise Refused("a quote")
            row.append(found.group().strip(" \t\r"))
            at = found.end()
        if at >= len(text) or text[at] == "\n":
            if row != [""] or quoted:
                rows.append(row)
            row = []
            if at >= len(text):
                break
        at += 1
    return rows


def read_csv(raw, path):
    """As the reference describes it: headings only where no cell of the first line is a number."""
    text = raw.decode("utf-8", "surrogateescape")
    if text.startswith("\ufeff"):
        text = text[1:]

    def number(cell):
        if cell in ("true", "false"):
            return cell == "true"
        if not re.fullmatch(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity|nan(\([\w]*\))?)", cell, re.I):
            raise Refused(cell)
        return int(cell) if re.fullmatch(r"[+-]?\d+", cell) else float(re.sub(r"\(.*\)", "", cell))

    def is_number(cell):
        try:
            number(cell)
            return True
        except Refused:
            return False
    rows = csv_rows(text)
    if rows and not any(is_number(c) for c in rows[0]) and any(c not in BLANK for c in rows[0]):
        if any(len(r) != len(rows[0]) for r in rows):
            raise Refused("columns")
        rows = rows[1:]
    if not rows or any(len(r) != len(rows[0]) for r in rows):
        raise Refused("columns")
    cells = [[number(c) for c in r] for r in rows]
    kinds = {type(c) for r in cells for c in r}
    if bool in kinds and len(kinds) > 1:
        raise Refused("types")
    if kinds == {bool}:
        out = numpy.array(cells, "?")
    elif float in kinds:
        out = numpy.array(cells, "f8").astype("f4")
    else:
        flat = [c for r in cells for c in r]
        out = numpy.array(cells, "i4" if all(-2**31 <= c < 2**31 for c in flat) else "i8")
    return out[:, 0] if out.shape[1] == 1 else out


# Whole files, as their bytes.


def safetensors(arrays):
    header, data = {}, b""
    codes = {v: k for k, v in SAFE.items()}
    for name, array in arrays.items():
        raw = array.tobytes()
        code = array.dtype.str.lstrip("<|")
        header[name] = {"dtype": codes["?" if code == "b1" else code], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def idx(array):
    code = {v: k for k, v in IDX.items()}[array.dtype.str[1:]]
    return bytes((0, 0, code, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + \
        array.astype(array.dtype.newbyteorder(">")).tobytes()


def whole_files(folder):
    """(extension, reader, bytes) of undamaged files."""
    def through(name, write, *args, **arrays):
        path = str(folder / name)
        write(path, *args, **arrays)
        return pathlib.Path(path).read_bytes()
    numbers = (numpy.arange(6).reshape(2, 3) * 1.25).astype("f4")
    wide = numpy.array([1, -2, 3_000_000_000], "i8")
    picture = numpy.arange(18, dtype="u1").reshape(2, 3, 3)
    return [
        (".npy", read_npy, through("a.npy", numpy.save, numbers)),
        (".npy", read_npy, through("b.npy", numpy.save, numpy.asfortranarray(numbers.astype(">f8")))),
        (".npy", read_npy, through("c.npy", numpy.save, wide)),
        (".npy", read_npy, through("d.npy", numpy.save, numpy.array([True, False]))),
        (".npz", read_npz, through("a.npz", numpy.savez, x=numbers, y=wide)),
        (".npz", read_npz, through("b.npz", numpy.savez_compressed, x=numpy.tile(numbers, (5, 4)))),
        (".safetensors", read_safetensors, safetensors({"x": numbers})),
        (".safetensors", read_safetensors, safetensors({"w": wide, "x": numbers, "b": numpy.array([True])})),
        (".csv", read_csv, b"a,b\n1,2.5\n-3,4e2\n"),
        (".csv", read_csv, b"1,2,3\n40,50,60\n"),
        (".csv", read_csv, b"y\n1\n3000000000\n"),
        (".csv", read_csv, b"true\nfalse\n"),
        (".csv", read_csv, b'"a ""b""";"c\nd"\r\n1;"2.5"\r\n-3; 4e2\r\n'),
        (".tsv", read_csv, b"a\tb\n1\t2\n"),
        (".idx", read_idx, idx(numbers)),
        (".idx", read_idx, idx(picture)),
        (".idx", read_idx, idx(numpy.array([1, -300, 7], "i2"))),
        (".pgm", read_pnm, b"P5\n3 2\n255\n" + bytes((0, 10, 255, 7, 8, 9))),
        (".pgm", read_pnm, b"P2\n3 2\n15\n1 2 3 4 5 15\n"),
        (".ppm", read_pnm, b"P6 # colours\n3 2\n255\n" + picture.tobytes()),
        (".pnm", read_pnm, b"P3 2 1 200 1 2 3 4 5 6\n"),
        (".png", read_png, png.written(picture[..., 0], 0)),
        (".png", read_png, png.written(picture, 2, pieces=3)),
        (".png", read_png, png.written(numpy.arange(24).reshape(3, 2, 4) * 2700, 6, bits=16)),
        (".txt", lambda raw, path: numpy.frombuffer(raw, "u1"), b"a text\n"),
    ]


def damaged(draw, whole):
    """(bytes, what was done to them)."""
    raw = bytearray(whole)
    kind = draw.choice(("cut", "flip", "flip", "flip", "flips", "set", "insert", "remove", "double", "append", "digit"))
    at = draw.randrange(len(raw))
    if kind == "cut":
        del raw[at:]
    elif kind == "flip":
        raw[at] ^= 1 << draw.randrange(8)
    elif kind == "flips":
        for _ in range(draw.randrange(2, 5)):
            raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
    elif kind == "set":
        raw[at] = draw.choice((0, 1, 0x20, 0x2c, 0x30, 0x7f, 0x80, 0xff, draw.randrange(256)))
    elif kind == "insert":
        raw[at:at] = bytes(draw.choice((0x20, 0x30, 0x31, 0x2c, 0x0a, 0, draw.randrange(256)))
                           for _ in range(draw.choice((1, 1, 2, 8))))
    elif kind == "remove":
        del raw[at:at + draw.choice((1, 1, 2, 8))]
    elif kind == "double":
        part = raw[at:at + draw.choice((1, 4, 8, 40))]
        raw[at:at] = part
    elif kind == "append":
        raw += bytes(draw.randrange(256) for _ in range(draw.choice((1, 4, 64))))
    else:  # a number becomes another: lengths, extents, offsets
        digits = [i for i, b in enumerate(raw) if 0x30 <= b <= 0x39]
        if digits:
            raw[draw.choice(digits)] = 0x30 + draw.randrange(10)
    return bytes(raw), kind


def shown(value):
    """What --format json shows, as numbers."""
    if isinstance(value, list):
        return [shown(v) for v in value]
    return float(value) if isinstance(value, str) else value


def same(a, b):
    if isinstance(a, list) or isinstance(b, list):
        return isinstance(a, list) and isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


def look(ein, path, reader, raw):
    """'refused' or 'accepted'; or what is wrong, which begins with '!'."""
    # `load` takes element type and rank from the file, so that both are compared too.
    members = path.suffix in (".npz", ".safetensors")
    sources = [f'let x = load("{path.name}", "x");', f'let x = load("{path.name}");'] if members else \
        [f'let x = load("{path.name}");']
    for source in sources:
        done = subprocess.run([ein, "run", "-c", source, "--show", "x", "--format", "json", "--backend", "ref"],
                              capture_output=True, text=True, timeout=60, cwd=path.parent, errors="replace",
                              env={**os.environ, "EINLANG_CACHE": "off"})
        if done.returncode == 0:
            break
    if done.returncode in (1, 3):
        if not done.stderr.startswith(("error[E0220]", "error[E0808]", "error[E0701]")):
            return "! refused without a reason: " + done.stderr[:300]
        return "refused"
    if done.returncode != 0:
        return f"! status {done.returncode}: {done.stderr[:300]}"
    x = json.loads(done.stdout.splitlines()[-1])["x"]
    try:
        want = reader(raw, str(path))
    except Exception as e:  # whatever the independent reader stumbles over
        if x["dtype"] == "bf16":
            return "accepted"  # NumPy has no such type
        return f"! accepted, but an independent reader says {type(e).__name__}: {str(e)[:200]}"
    code = want.dtype.str.lstrip("<>|=")
    if code == "V2" and x["dtype"] == "bf16":
        return "accepted"
    if NAMES.get(code) != x["dtype"] or list(want.shape) != x["shape"]:
        return f"! [{x['dtype']}; {x['shape']}] instead of [{code}; {list(want.shape)}]"
    # Shown with the digits that give the number of that type back.
    got = numpy.array(shown(x["data"]), want.dtype).reshape(want.shape)
    return "accepted" if same(got.tolist(), want.tolist()) else f"! {x['data']} instead of {want.tolist()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ein")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    ein, counts, wrong = os.path.abspath(options.ein), collections.Counter(), []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = whole_files(folder)

        def one(number, damage):
            extension, reader, whole = files[number % len(files)]
            draw = random.Random(f"{options.seed} {number}")
            raw, kind = damaged(draw, whole) if damage else (whole, "whole")
            path = folder / f"{'damaged' if damage else 'whole'}{number}{extension}"
            path.write_bytes(raw)
            try:
                said = look(ein, path, reader, raw)
            except subprocess.TimeoutExpired:
                said = "! does not end"
            path.unlink()
            if raw == whole and said == "refused":
                said = "! a whole file is refused"
            return extension, kind, said, raw

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            work = [pool.submit(one, n, False) for n in range(len(files))]
            work += [pool.submit(one, n, True) for n in range(options.count)]
            for number, done in enumerate(work):
                extension, kind, said, raw = done.result()
                counts[extension, said.split()[0].replace("!", "WRONG")] += 1
                if said.startswith("!"):
                    wrong.append(f"{extension}, {kind}, number {number - len(files)}: {said[2:]}\n  {raw[:400]!r}")
    for (extension, said), count in sorted(counts.items()):
        print(f"{extension:>13} {said:>9} {count}")
    for w in wrong[:20]:
        print(w)
    kinds = {extension for extension, _, _ in files}
    if any(counts[k, "accepted"] == 0 for k in kinds):
        print("nothing was accepted of some format: the comparison compared nothing")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
