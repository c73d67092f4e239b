"""The reference as an engine that replays vectors: `reference.py DIR`. Write one like it for your own cache."""

import sys
from typing import Any

import numpy as np
from replay import replay

from kvadapters.reference import Reference
from kvspec import masks
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config
from kvspec.rows.fingerprint import APART
from kvspec.session.driver import Session
from kvspec.session.step import Inputs

Raw = tuple[str, list[int], bytes]
"""An array as the reader has them: dtype, shape, bytes."""

NAMES = {dtype: name for name, dtype in DTYPES.items()} | {np.dtype(bool): "bool"}


class Engine:
    """The caches of one vector. It can do everything that a vector may ask."""

    def __init__(self, vector: dict[str, Any]) -> None:
        looks = "state", "positions", "history", "mask", "sees", "fold", "held", "offset", "free", "can"
        self.session = Session(Reference(), observe=looks)

    def __call__(self, op: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        """Perform an operation; give everything that is observed, by name."""
        step = self.session.do(op, _given(op, given))
        values = {n: x.partition(APART)[0] if n == "fingerprint" else x for n, x in step.values.items()}
        seen = {"result": step.result, **({"clause": step.clause} if step.clause else {})} | values
        return seen | {name: _raw(a) for name, a in step.arrays.items()}


def _given(op: dict[str, Any], given: dict[str, Any]) -> Inputs:
    rows = Pair(*(_array(given[f"rows.{kind}"]) for kind in "kv")) if "rows.k" in given else None
    opens = given.get("opens")
    return Inputs(
        rows,
        _array(given["queries"]) if "queries" in given else None,
        masks.from_json(op.get("parts", op.get("through", ["causal"]))),
        (opens["kind"], Config(**opens["config"])) if opens else None,
    )


def _array(raw: Raw) -> Array:
    dtype, shape, data = raw
    return np.frombuffer(data, DTYPES[dtype]).reshape(shape).copy()


def _raw(array: Array | None) -> Raw | None:
    return None if array is None else (NAMES[array.dtype], list(array.shape), array.tobytes())


if __name__ == "__main__":
    found = list(replay(sys.argv[1], Engine))
    wrong = [f"{id_}: {texts[0]}" for id_, texts in found if texts]
    print(*wrong, f"{len(found)} vectors replayed, {len(wrong)} not as expected", sep="\n")
    sys.exit(1 if wrong else 0)
