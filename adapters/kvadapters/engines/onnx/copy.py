"""ONNX's TensorScatter alone: it writes rows into a preallocated buffer, in a line or round its end.

The model narrows rows with Cast, turns them with Transpose where heads lie first, and scatters them along the
slots. Each call gives new buffers, so that none is handed in as its own source (`alias` is not claimed). There is
nothing to open, and no source that is longer than what is written. So the adapter makes the first buffers, of a
config that has some, and cuts sources of one length to the rows that are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache as cached
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from kvadapters.engines.limits import one_of
from kvadapters.engines.onnx.model import model
from kvadapters.engines.onnx.scatter import OPSET
from kvadapters.one_kind import OneKind
from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, WORDS, Array, Config, valid

Session = Callable[[str, str, str, bool], Any]
"""Makes a session of the model for a dtype of buffers, one of sources, a layout, and whether it goes round."""


def scattered(dtype: str, source: str, layout: str, sliding: bool) -> Any:
    """The model: rows `[1, rows, heads, dim]` are written from `at` on."""
    nodes, name = [], "new"
    if source != dtype and source == "f32":
        to = helper.np_dtype_to_tensor_dtype(DTYPES[dtype])
        nodes.append(helper.make_node("Cast", [name], ["narrow"], to=to))
        name = "narrow"
    if layout == "head":
        nodes.append(helper.make_node("Transpose", [name], ["turned"], perm=[0, 2, 1, 3]))
        name = "turned"
    own: dict[str, Any] = {"axis": 2 if layout == "head" else 1, "mode": "circular" if sliding else "linear"}
    nodes.append(helper.make_node("TensorScatter", ["past", name, "at"], ["present"], **own))
    of = {"at": TensorProto.INT64, "new": helper.np_dtype_to_tensor_dtype(DTYPES[source])}
    return model(nodes, dtype, of, OPSET)


class Buffer:
    """The buffers of keys and values of one layer."""

    def __init__(self, session: Session, config: Config) -> None:
        if not (valid(config) and config.batch == 1 and config.capacity and config.layout in WORDS["layout"]):
            raise ValueError(f"no buffer of {config}")
        self.session, self.config = session, config
        self.past = [np.zeros(self._shape(kind), DTYPES[config.dtype]) for kind in "kv"]

    def _shape(self, kind: str) -> tuple[int, ...]:
        _, heads, rows, width = self.config.shape(kind, self.config.capacity or 0)
        return (1, heads, rows, width) if self.config.layout == "head" else (1, rows, heads, width)

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        """Write both, or none. Raises ValueError for sources that are not of one length, or of fewer rows."""
        if len(keys) != len(values) or n > len(keys):
            raise ValueError(f"{n} rows of {len(keys)} keys and {len(values)} values")
        pairs = zip((keys, values), self.past, strict=True)
        self.past = [self._written(rows[None, :n], past, at, sliding) for rows, past in pairs]

    def _written(self, rows: Array, past: Array, at: int, sliding: bool) -> Array:
        source = next(name for name, dtype in DTYPES.items() if dtype == rows.dtype)
        session = self.session(self.config.dtype, source, str(self.config.layout), sliding)
        given = {"past": past, "new": rows, "at": np.array([at], np.int64)}
        found: Array = session.run(["present"], given)[0]
        return found

    def read(self, what: str) -> Pair:
        """The whole buffers."""
        if what != "state":
            raise Unsupported(f"a buffer has no {what}")
        return Pair(*(a[0].copy() for a in self.past))


def adapter(name: str, run: Callable[[Any], Any], said: Mapping[str, Any]) -> OneKind:
    """Make the adapter of an engine, which makes a session of a model by `run`."""

    def opened(config: Config) -> Buffer:
        one_of(config, said.get("dtypes", DTYPES))
        return Buffer(cached(lambda *of: run(scattered(*of))), config)

    return OneKind(name, "copy", opened, {"without": ["alias"], "laps": "refused"}, said)
