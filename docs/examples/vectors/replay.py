"""Replays the vectors of an exported folder on any cache, as the README.md there tells: a copy of this is enough.

`make(vector)` gives an engine for a vector, or None where that needs more (`kinds`, `dtypes`, `operations`). It is
called step by step with the operation and what is given, by name, arrays as (dtype, shape, bytes). It returns what
it sees in the same way; what it leaves out is not looked at."""

import json
import struct
from itertools import cycle, product
from pathlib import Path


def _legible(a, kind):  # rows by their serials
    (dtype, *shape), places, out = a[kind], {}, b""
    for at in product(*map(range, shape[:-1])):
        index = dict(zip(a.get("axes", "bhtd"), at, strict=False))
        nth = places.setdefault(tuple(i for axis, i in index.items() if axis in "lst"), len(places))
        serial, head, sequence = a["rows"][nth], index.get("h", 0), index.get("b", 0)
        low, mid, high = (serial or 0) % 128, (serial or 0) // 128 % 128, (serial or 0) // 128**2
        who = (kind == "v") + 2 * (head % 8) + 16 * (sequence % 8)
        digits = (3 * who + 5 * low + 7 * mid + 11 * high) % 128, low, who, mid, high
        ranges = [(head, sequence)[i % 2] // (8, 128, 2048)[i // 2] % 16 for i in range(5)]
        cells = [
            (1 + x + 128 * (r > 1) << max(0, r // 2 - 1)) * (-1) ** r for x, r in zip(digits, ranges, strict=True)
        ]
        row = [0 if serial is None else cells[i % min(5, shape[-1])] for i in range(shape[-1])]
        out += b"".join(struct.pack("<e" if dtype == "f16" else "<f", x)[2 * (dtype == "bf16") :] for x in row)
    return dtype, shape, out


def _read(named, tensors):  # name, value or array, how that is written
    for name, a in named.items():
        if isinstance(a, dict) and "rows" in a:
            yield from ((f"{name}.{kind}", _legible(a, kind), a) for kind in "kv")
        elif isinstance(a, dict) and "as" in a:
            data = tensors[a["tensor"]] if "tensor" in a else bytes(map(int, "".join(a["bits"])))
            yield name, (a["as"][0], a["as"][1:], data), a
        else:
            yield name, a, a


def _numbers(dtype, shape, data):
    wide = b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2)) if dtype == "bf16" else data
    return [x for (x,) in struct.iter_unpack("<e" if dtype == "f16" else "<f", wide)]


def _same(want, found, a, tensors, within):  # to the bit, but for NaN where that is said; or within its bounds
    if want == found or found is None or not isinstance(a, dict) or not a.keys() & {"nan", "within"}:
        return want == found
    if "number" in a:
        want, found, bounds = [float(a["number"])], [float(found)], [float(a["within"])]
    elif want[:2] != found[:2]:
        return False
    else:
        bounds = _numbers("f32", [], tensors[a["within"]["tensor"]]) if within and "within" in a else cycle([-1])
        want, found = _numbers(*want), _numbers(*found)
    return all(str(x) == str(y) or abs(x - y) <= w for x, y, w in zip(want, found, bounds, strict=False))


def _tensors(file):  # of a safetensors file, as bytes
    data = file.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    places = {name: t.get("data_offsets") for name, t in json.loads(data[8:begin]).items()}
    return {name: data[begin + at[0] : begin + at[1]] for name, at in places.items() if at}


def _differences(vector, tensors, engine, within):
    for i, step in enumerate(vector["steps"]):
        seen = engine(step["op"], {name: x for name, x, _ in _read(step.get("given", {}), tensors)})
        for name, want, a in _read(step["see"], tensors):
            if name in seen and not _same(want, seen[name], a, tensors, within):
                yield f"step {i}, {step['do']}: {name} is {seen[name]!r:.99}, not {want!r:.99}"


def replay(folder, make, within=False):
    """Give each vector's id and what differs. With `within`, outputs need only lie within their bounds."""
    for entry in json.loads(Path(folder, "index.json").read_text())["files"]:
        tensors = _tensors(Path(folder, entry["file"]).with_suffix(".safetensors"))
        for vector in json.loads(Path(folder, entry["file"]).read_text())["vectors"]:
            if (engine := make(vector)) is not None:
                yield vector["id"], list(_differences(vector, tensors, engine, within))
