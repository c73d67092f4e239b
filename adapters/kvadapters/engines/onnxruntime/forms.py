"""ONNX Runtime on a CPU: GroupQueryAttention with rows of 8 and 4 bits. Their scales are given, one for all rows or
one for each channel.

Codes are the operator's own; the adapter multiplies them by their scales, to show rows. Keys and values have scales
of one sort and codes of as many bits, which the operator demands. Otherwise all is as in
`kvadapters.engines.onnxruntime.caches`, and a cache without a form is one of its.
"""

from __future__ import annotations

from functools import cache as cached
from typing import Any

import numpy as np

from kvadapters.engines.limits import one_of
from kvadapters.engines.onnxruntime.caches import FLOATS, NAMES, SAID, Grouped, Shared, session
from kvadapters.update import from_update
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES, Array, Config, forms

try:
    from onnx import TensorProto, helper

    from kvadapters.engines.onnx.model import MICROSOFT, model
except ImportError as e:
    raise CannotRun(f"onnx cannot be imported ({e}); pip install 'kvconform[onnxruntime]'") from e

FORMS = [
    *("int8/t", "int8/t:0.5", "int8/t:0.02", "int8/t:0.5,int8/t:0.25", "int8/h:0.5:2", "int8/c:0.5:2:0.125"),
    *("int8/c:0.5:2:0.125,int8/c:1:0.25", "int4/t:0.5", "int4/t:0.5,int4/t:2", "int4/h:0.5:2,int4/h:1:0.25"),
    *("int4/c:1:4:0.5:2:0.25", "int4/c:0.5:2,int4/c:1:0.25:0.5"),
]
"""The forms that are judged; the operator takes any scales."""

SCALES = ("k_scale", "v_scale")
"""The inputs behind five that are left out."""


@cached
def coded_query(dtype: str, heads: int, window: int | None, bits: int, channels: bool) -> Any:
    """Make the session of a GroupQueryAttention over codes."""
    by = "PER_CHANNEL" if channels else "PER_TENSOR"
    node = helper.make_node(
        "GroupQueryAttention",
        (*NAMES, *[""] * 5, *SCALES),
        ("output", "present_key", "present_value", "weights"),
        domain=MICROSOFT,
        num_heads=heads,
        kv_num_heads=heads,
        local_window_size=-1 if window is None else window,
        qk_output=2,
        kv_cache_bit_width=bits,
        k_quant_type=by,
        v_quant_type=by,
    )
    rows = ("past_key", "past_value", "present_key", "present_value")
    kept = dict.fromkeys(rows, TensorProto.INT8 if bits == 8 else TensorProto.UINT8)
    scales = dict.fromkeys(SCALES, TensorProto.FLOAT)
    return session(model([node], dtype, dict.fromkeys(NAMES[5:], TensorProto.INT32) | kept | scales, opset=21))


class Codes(Grouped):
    """The past is codes: of 8 bits, or two of 4 bits, from -8 on, in a byte."""

    def __init__(self, config: Config) -> None:
        both = forms(config)
        assert both is not None, "a cache without a form is a plain one"
        self.bits, self.config = both[0].of.bits, config
        super().__init__(config)
        channels = any(form.channels or len(form.given) > 1 for form in both)
        heads, width = config.kv_heads, config.k_dim
        self.session = coded_query(one_of(config, FLOATS), heads, config.window, self.bits, channels)
        given = [form.scales(heads if channels else 1, width)[:, None] for form in both]
        shape = (heads, 1, width) if channels else (1, 1, 1)
        self.scales = [np.ascontiguousarray(np.broadcast_to(scale, shape)) for scale in given]

    def _empty(self, config: Config, rows: int) -> list[Array]:
        shape = super()._empty(config, rows)[0].shape
        width, dtype = (shape[3], np.int8) if self.bits == 8 else (shape[3] // 2, np.uint8)
        return [np.zeros((*shape[:3], width), dtype) for _ in "kv"]

    def performed(self, inputs: dict[str, Array]) -> list[Array]:
        """Hand in the scales too."""
        flat = [scale.reshape(-1) if scale.size == 1 else scale for scale in self.scales]
        return super().performed(inputs | dict(zip(SCALES, flat, strict=True)))

    def shown(self, past: list[Array]) -> tuple[Array, Array]:
        """Keys and values of codes: each times its scale."""
        keys, values = (
            (self.numbers(codes) * scale).astype(DTYPES[self.config.dtype])
            for codes, scale in zip(past, self.scales, strict=True)
        )
        return keys, values

    def numbers(self, codes: Array) -> Array:
        """The numbers that codes are, in f32."""
        if self.bits == 4:
            halves = np.stack([codes & 15, codes >> 4], -1).reshape(*codes.shape[:3], 2 * codes.shape[3])
            return halves.astype(np.float32) - 8
        return codes.astype(np.float32)

    def update(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """Attend, and keep the codes that are present."""
        super().update(keys, values)
        return self.shown(self.past)

    def weights(self, n: int, first: int) -> Array:
        """Which rows weigh something for n rows from a place on, when queries are zeros."""
        past = [np.zeros_like(a) for a in self.past]
        rows = np.zeros(self.config.shape("k", n), DTYPES[self.config.dtype])
        return self.run(rows, rows, past, first)[3][:, :1] > 0


class SharedCodes(Codes, Shared):
    """One buffer of codes is past and present."""

    def place(self, keys: Array, values: Array, first: int) -> tuple[Array, Array]:
        """Write from a place on, and give the rows up to there."""
        return self.shown(list(super().place(keys, values, first)))


def coded(codes: type[Grouped], plain: type[Grouped]) -> Any:
    """Make caches of codes, and plain ones of configs without a form."""
    return lambda config: (plain if config.form is None else codes)(config)


LIMITS = {"dims": {"equal": True, "multiple": 8}, "form": FORMS}
ALIKE: dict[str, Any] = {"said": {**SAID, "limits": LIMITS}, "also": ()}
WHOLE: dict[str, Any] = {**ALIKE, "update": lambda cache, keys, values: cache.update(keys, values)}
WHOLE |= {"mask": lambda cache, n: cache.mask(n), "length": Grouped.length}

growing = from_update("onnxruntime-gqa-forms", kind="growing", make=coded(Codes, Grouped), **WHOLE)
window = from_update("onnxruntime-gqa-window-forms", kind="ring", make=coded(Codes, Grouped), **WHOLE)
shared = from_update(
    "onnxruntime-gqa-shared-forms",
    kind="bounded",
    make=coded(SharedCodes, Shared),
    update=lambda cache, keys, values, first: cache.place(keys, values, first),
    mask=lambda cache, n: cache.mask(n),
    dialect={"bounded.positions": "caller", "mask.made": "after"},
    **{**ALIKE, "also": ("rewind",)},
)
