"""Makes of a whole engine a cache of the contract, so that the chapters on caches judge it by what its queries see.

The rows of a trace become tokens, each of an id of its own. The engine decodes them through its own cache, and a
reader tells of each query which tokens it saw. These tokens' rows are handed out as the history, with a mask that
says who saw which. So `kvconform run` asks a whole engine the traces that caches are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache as cached
from typing import Any

from kvadapters import scratch
from kvadapters.one_kind import OneKind
from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.model import Model
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.sessions.pool import CLAIM, Sequences
from kvadapters.probe.sessions.seen import Session
from kvadapters.update import UpdateAdapter, from_update
from kvspec.geometry import Config

LAYERS: Mapping[str, Callable[[Config], str]] = {
    "growing": lambda _: "full,full",
    "bounded": lambda _: "full,full",
    "ring": lambda config: f"window {config.window},window {config.window}",
    "hybrid ring": lambda config: f"window {config.window},full",
}
"""The layers of the probe that stands for a kind of cache. The first shows what the kind shows; the others must
show what their own view does."""

IDS = 55
"""Content ids of a probe with one kv head, which is quick."""
LIMITS = {"batch": 1, "rows": IDS - 5}
"""A text has no id twice."""


@dataclass(frozen=True)
class Wanted:
    """What an engine loads: a probe that was written to a folder, for caches of a config."""

    probe: Probe
    folder: str
    dtype: str
    config: Config


Load = Callable[[Wanted], Model]


def from_folder(load: Callable[..., Model], *more: Any) -> Load:
    """Make a loader of a function that takes the probe's folder, the dtype, and `more`."""
    return lambda wanted: load(wanted.folder, wanted.dtype, *more)


@dataclass(frozen=True)
class Engine:
    """An engine, and the checkpoints that it loads."""

    load: Load
    architecture: str = "qwen3"
    file_format: str = "safetensors"
    dtype: str = "f32"
    rows: str | None = None
    hybrid: bool = False
    """Whether its layers with windows have a full one behind them."""

    def opened(self, kind: str, config: Config) -> Session:
        """Make an empty cache of the engine, with a probe whose layers are such."""
        sizes = config.changed(kv_heads=1, k_dim=8, v_dim=8, dtype="f32", step=1)
        layers = LAYERS[f"hybrid {kind}" if self.hybrid else kind](config)
        probe, model = _loaded(self, layers, sizes)
        return Session(probe, Precision(self.dtype, self.rows), model, config)


@cached
def _loaded(engine: Engine, layers: str, config: Config) -> tuple[Probe, Model]:
    probe, folder = Probe.of(engine.architecture, layers), scratch.folder()
    probe = replace(probe, layout=replace(probe.layout, kv_heads=1))
    probe.write(folder, engine.dtype, engine.file_format)
    return probe, engine.load(Wanted(probe, folder, engine.dtype, config))


def pool_of(name: str, engine: Engine, said: Mapping[str, Any] | None = None) -> OneKind:
    """Make an adapter of an engine whose memory has several sequences: a pool that forks them."""

    def opens(config: Config) -> Sequences:
        root = engine.opened("growing", config.changed(page_size=None, pages=None))
        return Sequences(config, root, LIMITS["rows"])

    return OneKind(name, "page", opens, CLAIM, {"limits": LIMITS, "by_adapter": ["sequence"], **(said or {})})


def from_model(
    name: str,
    kind: str,
    engine: Engine,
    can: frozenset[str],
    dialect: Mapping[str, int | str] | None = None,
    said: Mapping[str, Any] | None = None,
) -> UpdateAdapter:
    """Make the adapter. `can` says what the engine's caches have: `rewind`, `copy`, and `drafts` if a rewind
    always drops the newest tokens again."""
    functions: dict[str, Any] = {}
    if "rewind" in can:
        functions |= {"trim": Session.rewind}
    if "drafts" in can:
        functions |= {"commit": Session.commit}
    if can >= {"rewind", "copy"}:
        functions |= {"state": Session.copy, "set_state": lambda _, saved: saved.copy()}
    return from_update(
        name,
        kind=kind,
        make=lambda config: engine.opened(kind, config),
        update=Session.update,
        mask=Session.mask,
        also=(),
        without=("bits",) if "copy" in can or "rewind" not in can else ("bits", "ask"),
        dialect={"mask.made": "after", **(dialect or {})},
        said={"limits": LIMITS, **(said or {})},
        **functions,
    )
