"""PNG images, written and read with nothing but Python's zlib, to compare the compiler's with."""

import struct
import zlib

import numpy

SIGNATURE = b"\x89PNG\r\n\x1a\n"
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def predicted(kind, left, up, corner):
    if kind == 4:
        p = left + up - corner
        return min((left, up, corner), key=lambda v: abs(p - v))
    return (0, left, up, (left + up) // 2)[kind]


def packed_rows(samples, bits):
    """Rows of samples as bytes, several in one where they are small."""
    if bits == 16:
        return [numpy.asarray(r).astype(">u2").tobytes() for r in samples]
    if bits == 8:
        return [numpy.asarray(r).astype("u1").tobytes() for r in samples]
    out = []
    for row in samples:
        text = "".join(format(int(v), f"0{bits}b") for v in row)
        text += "0" * (-len(text) % 8)
        out.append(bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8)))
    return out


def filtered(rows, step, filters):
    """`filters`: the filter of each row, in turn."""
    out, above = b"", None
    for n, row in enumerate(rows):
        kind = filters[n % len(filters)]
        above = above or bytes(len(row))
        line = bytes((v - predicted(kind, row[i - step] if i >= step else 0, above[i], above[i - step] if i >= step else 0)) % 256
                     for i, v in enumerate(row))
        out += bytes([kind]) + line
        above = row
    return out


def written(samples, colour, bits=8, filters=(0, 1, 2, 3, 4), interlaced=False, palette=None, transparent=None, pieces=1):
    """The file of an array [y, x] or [y, x, samples]."""
    samples = numpy.asarray(samples)
    height, width = samples.shape[:2]
    n = SAMPLES[colour]
    step = max(1, n * bits // 8)
    data = b""
    for x, y, dx, dy in ADAM7 if interlaced else ((0, 0, 1, 1),):
        part = samples[y::dy, x::dx]
        if part.size:
            data += filtered(packed_rows(part.reshape(part.shape[0], -1), bits), step, filters)
    data = zlib.compress(data, 9)
    size = -(-len(data) // pieces)
    out = SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced))
    if palette is not None:
        out += chunk(b"PLTE", bytes(palette))
    if transparent is not None:
        out += chunk(b"tRNS", bytes(transparent))
    out += chunk(b"tEXt", b"Comment\0made by hand")
    for at in range(0, len(data), size):
        out += chunk(b"IDAT", data[at:at + size])
    return out + chunk(b"IEND", b"")


def read(raw):
    """The samples of a file that is not interlaced: an array [y, x] or [y, x, samples]; damage is an exception."""
    if raw[:8] != SIGNATURE:
        raise ValueError("signature")
    at, chunks = 8, []
    while at < len(raw):
        size, = struct.unpack(">I", raw[at:at + 4])
        kind, body, crc = raw[at + 4:at + 8], raw[at + 8:at + 8 + size], raw[at + 8 + size:at + 12 + size]
        if len(crc) != 4 or zlib.crc32(kind + body) != struct.unpack(">I", crc)[0]:
            raise ValueError("chunk")
        chunks.append((kind, body))
        at += 12 + size
    if chunks[0][0] != b"IHDR" or chunks[-1] != (b"IEND", b""):
        raise ValueError("chunks")
    width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if interlaced or bits not in (8, 16) or colour == 3:
        raise ValueError("not what is written here")
    data = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    n = SAMPLES[colour]
    step = n * bits // 8
    length = width * step
    if len(data) != height * (1 + length):
        raise ValueError("size")
    rows, above = [], bytes(length)
    for y in range(height):
        kind, line = data[y * (1 + length)], data[y * (1 + length) + 1:(y + 1) * (1 + length)]
        row = bytearray()
        for i, v in enumerate(line):
            row.append((v + predicted(kind, row[i - step] if i >= step else 0, above[i], above[i - step] if i >= step else 0)) % 256)
        rows.append(numpy.frombuffer(bytes(row), ">u2" if bits == 16 else "u1"))
        above = bytes(row)
    out = numpy.stack(rows).reshape(height, width, n).astype("i4" if bits == 16 else "u1")
    return out[..., 0] if n == 1 else out
