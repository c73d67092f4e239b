"""The plain reader of exported vectors, the reference as its engine, and what is changed in a folder to be seen."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from kvconform.vectors import files

FOLDER = Path(__file__).parents[3] / "docs" / "examples" / "vectors"


def _module(name: str) -> Any:
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


reader = _module("replay")
visible = _module("visible")
Engine = _module("reference").Engine


CHANGES = {
    "a value": ("mask", '"offset": 3', '"offset": 4'),
    "a row": ("store", '"state.0": {"rows": [0, 1, 2]', '"state.0": {"rows": [0, 1, 3]'),
    "a mask": ("mask", '{"bits": ["100', '{"bits": ["110'),
    "a clause": ("store", '"result": "refused", "clause": "STORE-8"', '"result": "refused", "clause": "STORE-9"'),
    "a result": ("store", '"result": "refused", "clause": "STORE-8"', '"result": "ok", "clause": "STORE-8"'),
    "a sum": ("store", '{"number": "0.0"', '{"number": "1.0"'),
}
"""Changes of one expectation in the worked examples: of which chapter, what, into what."""


def changed(file: Path, was: str, now: str) -> str:
    """Change the first place that holds a text; gives the id of the vector it lies in."""
    text = file.read_text()
    before, found, after = text.partition(was)
    assert found and was != now, was
    file.write_text(before + now + after)
    return str(before.rpartition('"id": "')[2].partition('"')[0])


def expected(document: Path) -> str:
    """A tensor that must be seen, and is not given."""
    steps = [step for v in files.read(document)["vectors"] for step in v["steps"]]
    seen, given = (
        {a["tensor"] for s in steps for a in s.get(part, {}).values() if isinstance(a, dict) and "tensor" in a}
        for part in ("see", "given")
    )
    whole = files.read_tensors(document)
    return next(n for n in sorted(seen - given) if whole[n].view("u1").any())


def flip(document: Path, name: str) -> None:
    """Change the lowest bit of a tensor's first number that is not 0."""
    file = document.with_suffix(".safetensors")
    data = bytearray(file.read_bytes())
    begin = 8 + int.from_bytes(data[:8], "little")
    first, end = json.loads(data[8:begin])[name]["data_offsets"]
    size = files.read_tensors(document)[name].itemsize
    at = next(i for i in range(begin + first, begin + end, size) if any(data[i : i + size]))
    data[at] ^= 1
    file.write_bytes(data)
