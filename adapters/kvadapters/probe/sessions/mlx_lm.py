"""mlx-lm whole: its models with the caches that it makes for them, asked as caches are."""

from __future__ import annotations

from importlib.metadata import version

from kvadapters.probe.model import Model
from kvadapters.probe.sessions import Engine, Wanted, batch_of, from_folder, from_model
from kvspec.errors import CannotRun

try:
    from kvadapters.probe.engines.mlx_lm import batched, load, sinks
except ImportError as e:
    raise CannotRun(f"mlx-lm cannot be imported ({e}); pip install 'kvconform[mlx-lm]'") from e


LOAD = from_folder(load)
SAID = {"version": version("mlx-lm")}
CUT = frozenset({"rewind", "copy"})


def _sinks(wanted: Wanted) -> Model:
    return sinks(wanted.folder, wanted.dtype, wanted.config.window or 0, wanted.config.sinks or 0)


growing = from_model(
    "mlx-whole",
    "growing",
    Engine(LOAD, file_format="mlx"),
    CUT | {"drafts"},
    {"growing.range": "clamped at 0"},
    SAID,
)
sliding = from_model(
    "mlx-whole-sliding",
    "ring",
    Engine(LOAD, "gpt-oss", "mlx", hybrid=True),
    CUT,
    {"ring.range": "clamped at 0", "ring.rewind": "below"},
    SAID,
)
sink = from_model(
    "mlx-whole-sinks",
    "sink",
    Engine(_sinks, file_format="mlx"),
    CUT,
    {"sink.range": "clamped at 0", "sink.full": "refused"},
    SAID,
    also=("counted", "kept"),
)
ALIKE = ("reorder", "repeat", "each")
"""What its batches do not have: sequences are kept or dropped, and all are trimmed by one number."""
batch = batch_of("mlx-whole-batch", Engine(from_folder(batched), file_format="mlx"), SAID, ALIKE)
