"""What tests about files share: a folder for each test, arrays, and the bytes of safetensors files."""

import json
import pathlib
import struct

import numpy

from test_cli import Cli

DTYPES = {"bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "f16": "f2",
          "f32": "f4", "f64": "f8"}
SAFE = {"bool": "BOOL", "i8": "I8", "i16": "I16", "i32": "I32", "i64": "I64", "u8": "U8",
        "f16": "F16", "f32": "F32", "f64": "F64"}


def safetensors(tensors):
    """The bytes of a file; tensors: {name: (dtype, array)}."""
    header, data = {"__metadata__": {"made": "by hand"}}, b""
    for name, (dtype, array) in tensors.items():
        raw = array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(path):
    raw = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
    names = {v: DTYPES[k] for k, v in SAFE.items()}
    return {name: numpy.frombuffer(data[e["data_offsets"][0]:e["data_offsets"][1]],
                                   names[e["dtype"]]).reshape(e["shape"])
            for name, e in header.items()}


class Files(Cli):
    def ein(self, *args, **more):
        """In the folder of the test: programs reach no other."""
        return super().ein(*args, **{"cwd": self.folder.name, **more})

    def shown(self, code, names="x", *args, **more):
        done = self.check(["-c", code, "--show", names, "--format", "json", *args], 0, **more)
        return json.loads(done.stdout.splitlines()[-1])

    def array(self, shape=(2, 3), dtype="f4"):
        return numpy.arange(numpy.prod(shape)).reshape(shape).astype(dtype)

    def quoted(self, path):
        return json.dumps(str(path))
