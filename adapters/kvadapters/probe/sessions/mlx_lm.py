"""mlx-lm whole: its models with the caches that it makes for them, asked as caches are."""

from __future__ import annotations

from importlib.metadata import version

from kvadapters.probe.sessions import Engine, from_folder, from_model
from kvspec.errors import CannotRun

try:
    from kvadapters.probe.engines.mlx_lm import load
except ImportError as e:
    raise CannotRun(f"mlx-lm cannot be imported ({e}); pip install 'kvconform[mlx-lm]'") from e


LOAD = from_folder(load)
SAID = {"version": version("mlx-lm")}
CUT = frozenset({"rewind", "copy"})

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
