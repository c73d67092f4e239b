"""Hugging Face transformers whole: its models with its caches, asked as caches are."""

from __future__ import annotations

from typing import Any

from kvadapters.probe.sessions import LIMITS, Engine, Wanted, batch_of, from_folder, from_model
from kvspec.errors import CannotRun

try:
    import transformers

    from kvadapters.probe.engines import transformers as engine
except ImportError as e:
    raise CannotRun(f"transformers cannot be imported ({e}); pip install 'kvconform[transformers]'") from e


def _static(wanted: Wanted) -> Any:
    return engine.static(wanted.folder, wanted.dtype, wanted.config.max_len)


def _padded(wanted: Wanted) -> Any:
    return engine.padded(wanted.folder, wanted.dtype, wanted.probe.layout.ids - 1)


DYNAMIC = from_folder(engine.dynamic)
SAID = {"version": transformers.__version__}
CUT = frozenset({"rewind", "copy"})

# With a window of one it never drops a row, which is known: reports/deviations/transformers/sliding_window_one.py.
growing = from_model(
    "transformers-whole", "growing", Engine(DYNAMIC), CUT | {"drafts"}, {"growing.range": "clamped at 0"}, SAID
)
sliding = from_model(
    "transformers-whole-sliding",
    "ring",
    Engine(DYNAMIC),
    CUT,
    {"ring.range": "clamped at 0", "ring.rewind": "below", "ring.keeps": "window - 1"},
    {**SAID, "limits": {**LIMITS, "window": {"least": 2}}},
)
padded = batch_of("transformers-whole-padded", Engine(_padded), SAID)
bounded = from_model("transformers-whole-static", "bounded", Engine(_static), frozenset({"copy"}), {}, SAID)
