"""OpenVINO on a CPU: the state of a ScaledDotProductAttention, whose rows have 8 bits unless it is told otherwise.

Each row in a head has codes from 0 to 255, a scale and a zero: here `int8a/1`. Without a form the state is f32.
Rows are read and set by the API of states, and a rewind is what OpenVINO GenAI does: a state is read, cut, and set.
Masks are the caller's. Queries are zeros. Appends of no rows, who owns arrays and the bits of rows are not claimed.
A state of f32 that is set has lost its subnormal numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache as cached
from typing import Any

import numpy as np

from kvadapters.engines.limits import one_of, one_width
from kvadapters.update import from_update
from kvspec.errors import CannotRun
from kvspec.geometry import Array, Config

try:
    import openvino as ov
    from openvino import opset6, opset13
except ImportError as e:
    raise CannotRun(f"openvino cannot be imported ({e}); pip install 'kvconform[openvino]'") from e

FORMS = ["int8a/1"]
NAMES = ("past_k", "past_v")


def past(name: str, heads: int, width: int, queries: Any, beam: Any) -> Any:
    """Give the rows of a state before this call, in the order of the sequences that is asked for."""
    first = opset13.gather(opset13.shape_of(queries, output_type="i64"), [0], np.int64(0))
    shape = opset13.concat([first, opset13.constant(np.array([heads, 0, width], np.int64))], 0)
    empty = opset13.broadcast(opset13.constant(np.float32(0)), shape)
    state = opset6.read_value(empty, name, np.float32, ov.PartialShape([-1, heads, -1, width]))
    return opset13.gather(state, beam, np.int64(0))


@cached
def compiled(heads: int, width: int, precision: str) -> Any:
    """Compile the model of one layer once: rows are put behind those of the state, and attended to."""
    rows = [opset13.parameter([-1, heads, -1, width], np.float32, name=name) for name in "qkv"]
    beam = opset13.parameter([-1], np.int32, name="beam")
    mask = opset13.parameter([-1, 1, -1, -1], np.float32, name="mask")
    whole, sinks = list[Any](), list[Any]()
    for name, new in zip(NAMES, rows[1:], strict=True):
        whole.append(opset13.concat([past(name, heads, width, rows[0], beam), new], 2))
        sinks.append(opset6.assign(whole[-1], name))
    out = opset13.result(opset13.scaled_dot_product_attention(rows[0], *whole, mask))
    model = ov.Model([out], sinks, [*rows, beam, mask], "one layer")
    said = {"KV_CACHE_PRECISION": precision, "INFERENCE_PRECISION_HINT": "f32"}
    return ov.Core().compile_model(model, "CPU", said)


class Cache:
    """A request, whose states are the cache."""

    def __init__(self, config: Config) -> None:
        one_of(config, ["f32"])
        width = one_width(config)
        self.request = compiled(
            config.kv_heads, width, "f32" if config.form is None else "u8"
        ).create_infer_request()
        self.batch, self.rows = config.batch, 0

    def states(self) -> list[Any]:
        """The states of keys and of values."""
        found = {state.name: state for state in self.request.query_state()}
        return [found[name] for name in NAMES]

    def update(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """Attend to the rows that are there and to these. Raises ValueError for unequal counts, but for no values:
        OpenVINO writes behind its arrays, and the process dies at something else later."""
        n, total = keys.shape[2], self.rows + keys.shape[2]
        if values.shape[2] not in (0, n):
            raise ValueError(f"{n} keys, {values.shape[2]} values")
        mask = np.where(np.tri(n, total, self.rows, dtype=bool), 0, -np.inf).astype(np.float32)[None, None]
        beam = np.arange(self.batch, dtype=np.int32)
        self.request.infer([np.zeros_like(keys), keys, values, beam, mask])
        self.rows = total
        return self.read()

    def read(self) -> tuple[Array, Array]:
        """The rows, as the engine reads them."""
        tensors = [state.state for state in self.states()]
        keys, values = (np.array(tensor.data) for tensor in tensors)
        return keys, values

    def view(self) -> tuple[Array, Array] | None:
        """The rows; none before the first."""
        return self.read() if self.rows else None

    def put(self, rows: Sequence[Array]) -> None:
        """Set the states."""
        for state, array in zip(self.states(), rows, strict=True):
            state.state = ov.Tensor(np.ascontiguousarray(array))
        self.rows = rows[0].shape[2]

    def trim(self, n: int) -> None:
        """Drop the newest rows. Raises ValueError for more than there are, of which OpenVINO is not asked."""
        if not 0 <= n <= self.rows:
            raise ValueError(f"{self.rows} rows")
        self.put([array[:, :, : self.rows - n] for array in self.read()]) if n < self.rows else self.reset()

    def reset(self) -> None:
        """Empty the states."""
        self.request.reset_state()
        self.rows = 0


growing = from_update(
    "openvino",
    kind="growing",
    make=Cache,
    update=Cache.update,
    view=Cache.view,
    length=lambda cache: cache.rows,
    trim=Cache.trim,
    can_trim=lambda cache, n: 0 <= n <= cache.rows,
    reset=Cache.reset,
    state=Cache.read,
    set_state=Cache.put,
    without=("bits",),
    said={
        "version": ov.__version__.partition("-")[0],
        "dtypes": ["f32"],
        "limits": {"dims": {"equal": True}, "form": FORMS},
        "by_adapter": ["offset"],
    },
)
