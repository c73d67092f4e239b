"""ONNX Runtime on a CPU. Attention has its past or a static cache. GroupQueryAttention has its past, with or
without a local window, or one buffer that is past and present.

Masks are what the operator itself applies, as in `kvadapters.engines.onnx.attention`. Not claimed: appends of no
rows, who owns arrays, and batches of GroupQueryAttention, which takes several rows of one sequence only. Nothing is
opened: a config only shapes the first past.
"""

from __future__ import annotations

from functools import cache as cached
from typing import Any

import numpy as np

from kvadapters.engines.limits import one_of, one_width
from kvadapters.engines.onnx import attention as onnx
from kvadapters.engines.onnx import copy as onnx_copy
from kvadapters.engines.onnx import scatter as onnx_scatter
from kvadapters.engines.onnx.model import MICROSOFT, model
from kvadapters.update import UpdateAdapter, from_update
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES, Array, Config

try:
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError as e:
    raise CannotRun(f"onnxruntime cannot be imported ({e}); pip install 'kvconform[onnxruntime]'") from e


FLOATS = ["f32", "f16"]
SAID: dict[str, Any] = {"version": onnxruntime.__version__, "dtypes": FLOATS}


def session(made: Any) -> Any:
    """Make a session of a model on the CPU."""
    return onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


@cached
def attention(dtype: str) -> Any:
    """Make the session of an Attention once."""
    return session(onnx.attention(dtype, None))


growing = from_update(
    "onnxruntime-attention",
    kind="growing",
    make=lambda config: onnx.Cache(attention(one_of(config, FLOATS)), config),
    update=onnx.Cache.update,
    mask=onnx.Cache.mask,
    length=lambda cache: cache.past[0].shape[2],
    also=("batch",),
    said=SAID,
)


@cached
def scatter_session(dtype: str) -> Any:
    """Make the session of a static cache once."""
    return session(onnx_scatter.attention(dtype))


scatter = onnx_scatter.adapter("onnxruntime-scatter", lambda config: scatter_session(one_of(config, FLOATS)), SAID)


copy = onnx_copy.adapter("onnxruntime-copy", session, SAID)

NAMES = ("query", "key", "value", "past_key", "past_value", "seqlens_k", "total")
"""The inputs of GroupQueryAttention. It takes the lengths after the append, minus one."""


@cached
def grouped_query(dtype: str, heads: int, window: int | None, evicts: bool = False) -> Any:
    """Make the session of a GroupQueryAttention with as many heads of queries as of keys. One with buffers of a
    window, out of which it `evicts` rows, does not give the weights."""
    own = {"sliding_window_cache": 1} if evicts else {"qk_output": 2}
    node = helper.make_node(
        "GroupQueryAttention",
        NAMES,
        ("output", "present_key", "present_value", "weights")[: 3 if evicts else 4],
        domain=MICROSOFT,
        num_heads=heads,
        kv_num_heads=heads,
        local_window_size=-1 if window is None else window,
        **own,
    )
    return session(model([node], dtype, dict.fromkeys(NAMES[5:], TensorProto.INT32), opset=21))


def flat(rows: Array) -> Array:
    """Rows `[B, H, n, dim]` with their heads side by side, as the operator has them: `[B, n, H * dim]`."""
    batch, heads, n, width = rows.shape
    return rows.swapaxes(1, 2).reshape(batch, n, heads * width)


class Grouped:
    """The past of a GroupQueryAttention: the present outputs are the past of the next call."""

    def __init__(self, config: Config) -> None:
        self.session = grouped_query(one_of(config, FLOATS), config.kv_heads, config.window)
        self.past = self._empty(config, 0)

    def _empty(self, config: Config, rows: int) -> list[Array]:
        shape = (config.batch, config.kv_heads, rows, one_width(config, 8))
        return [np.zeros(shape, DTYPES[config.dtype]) for _ in "kv"]

    def run(self, keys: Array, values: Array, past: list[Array], first: int) -> list[Array]:
        """Run with queries of zeros: the output, the keys and values that are present, the weights."""
        total = first + keys.shape[2]
        lengths = [np.full(keys.shape[0], total - 1, np.int32), np.array([total], np.int32)]
        rows = map(flat, (np.zeros_like(keys), keys, values))
        return self.performed(dict(zip(NAMES, (*rows, *past, *lengths), strict=True)))

    def performed(self, inputs: dict[str, Array]) -> list[Array]:
        """Have ONNX Runtime make the arrays of the outputs."""
        outputs: list[Array] = self.session.run(None, inputs)
        return outputs

    def update(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """Attend, and keep what is present."""
        self.past = self.run(keys, values, self.past, self.length())[1:3]
        return self.past[0], self.past[1]

    def length(self) -> int:
        """The rows of the past."""
        return int(self.past[0].shape[2])

    def mask(self, n: int) -> Array:
        """The rows that weigh something when all are zeros."""
        return self.weights(n, self.length())

    def weights(self, n: int, first: int) -> Array:
        """Which rows weigh something for n rows from a place on, when all are zeros."""
        past = [np.zeros_like(a) for a in self.past]
        shape = past[0].shape
        rows = np.zeros((*shape[:2], n, shape[3]), past[0].dtype)
        return self.run(rows, rows, past, first)[3][:, :1] > 0


class Shared(Grouped):
    """One buffer is past and present, as in models that know their longest text: nothing is copied."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.past = self._empty(config, config.max_len or 0)
        self.first = 0

    def performed(self, inputs: dict[str, Array]) -> list[Array]:
        """Bind each buffer as an input and as an output."""
        binding, inputs = self.session.io_binding(), {n: np.ascontiguousarray(a) for n, a in inputs.items()}
        binding.bind_output("output")
        for name, array in inputs.items():
            where = ("cpu", 0, array.dtype, array.shape, array.ctypes.data)
            binding.bind_input(name, *where)
            if name.startswith("past_"):
                binding.bind_output(name.replace("past", "present"), *where)
        binding.bind_output("weights")
        self.session.run_with_iobinding(binding)
        return [output.numpy() for output in binding.get_outputs()]

    def place(self, keys: Array, values: Array, first: int) -> tuple[Array, Array]:
        """Write from a place on, and give the rows up to there."""
        self.run(keys, values, self.past, first)
        self.first, total = first, first + keys.shape[2]
        return self.past[0][:, :, :total], self.past[1][:, :, :total]

    def mask(self, n: int) -> Array:
        """The rows that weigh something for the newest."""
        return self.weights(n, self.first)


def grouped_adapter(name: str, kind: str, make: type[Grouped], **functions: Any) -> UpdateAdapter:
    """Make the adapter of one kind."""
    return from_update(
        f"onnxruntime-{name}",
        kind=kind,
        make=make,
        said={**SAID, "limits": {"dims": {"equal": True, "multiple": 8}}},
        **functions,
    )


WHOLE: dict[str, Any] = {"update": Grouped.update, "mask": Grouped.mask, "length": Grouped.length, "also": ()}

grouped = grouped_adapter("gqa", "growing", Grouped, **WHOLE)
grouped_window = grouped_adapter("gqa-window", "ring", Grouped, **WHOLE)
grouped_shared = grouped_adapter(
    "gqa-shared",
    "bounded",
    Shared,
    update=Shared.place,
    mask=Shared.mask,
    also=("rewind",),
    dialect={"bounded.positions": "caller", "mask.made": "after"},
)
