"""Makes of a whole engine a cache of the contract, so that the chapters on caches judge it by what its queries see.

The rows of a trace become tokens, each of an id of its own. The engine decodes them through its own cache, and a
reader tells of each query which tokens it saw. These tokens' rows are handed out as the history, with a mask that
says who saw which. So `kvconform run` asks a whole engine the traces that caches are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache as cached
from typing import Any

from kvadapters import scratch
from kvadapters.one_kind import OneKind
from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.model import Batched, Model
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.sessions import batch
from kvadapters.probe.sessions.pool import CLAIM, Sequences
from kvadapters.probe.sessions.seen import Session
from kvadapters.update import UpdateAdapter, from_update
from kvspec.errors import Unsupported
from kvspec.geometry import Config, valid

LAYERS: Mapping[str, Callable[[Config], str]] = {
    "growing": lambda _: "full,full",
    "bounded": lambda _: "full,full",
    "ring": lambda config: f"window {config.window},window {config.window}",
    "sink": lambda _: "full",
    "hybrid ring": lambda config: f"window {config.window},full",
}
"""The layers of the probe that stands for a kind of cache. The first shows what the kind shows; the others must
show what their own view does."""

IDS = 55
"""Content ids of a probe with one kv head, which is quick."""
LIMITS = {"batch": 1, "rows": IDS - 5}
"""A text has no id twice."""
BATCHES, HELD = {"batch": 4, "rows": 11}, IDS - 1 - 8
"""No two sequences of a batch have an id, so that it has `HELD` rows at most: 4 sequences of 11 columns. One id is
left for padding, and each of 8 sequences is asked with another one."""


@dataclass(frozen=True)
class Wanted:
    """What an engine loads: a probe that was written to a folder, for caches of a config."""

    probe: Probe
    folder: str
    dtype: str
    config: Config


Load = Callable[[Wanted], Any]


def from_folder(load: Callable[..., Model | Batched], *more: Any) -> Load:
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
        probe, model = self.loaded(LAYERS[f"hybrid {kind}" if self.hybrid else kind](config), config)
        return Session(probe, self.precision, model, config)

    def batch(self, config: Config) -> batch.Batch:
        """Make a batch of the engine, whose sequences hold nothing."""
        if not valid(config):
            raise ValueError("no batch has such sizes")
        if config.window is not None:
            raise Unsupported("a batch with a window")
        probe, batched = self.loaded("full,full", config.changed(batch=1, padding=None))
        return batch.Batch(config, probe, self.precision, batched, HELD)

    def loaded(self, layers: str, config: Config) -> tuple[Probe, Any]:
        """Load a probe with such layers; once, whatever the rows of a config are."""
        return _loaded(self, layers, config.changed(kv_heads=1, k_dim=8, v_dim=8, dtype="f32", step=1))

    @property
    def precision(self) -> Precision:
        """What is read of its answers."""
        return Precision(self.dtype, self.rows)


@cached
def _loaded(engine: Engine, layers: str, config: Config) -> tuple[Probe, Any]:
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


def batch_of(
    name: str, engine: Engine, said: Mapping[str, Any] | None = None, without: Collection[str] = ()
) -> OneKind:
    """Make an adapter of an engine's batches of unequal lengths. `without` is what its batches do not have."""
    claim = {"without": [*batch.WITHOUT, *without]}
    own = {"limits": BATCHES, "by_adapter": ["sequences", "positions"], **(said or {})}
    return OneKind(name, "ragged", engine.batch, claim, own)


def from_model(
    name: str,
    kind: str,
    engine: Engine,
    can: frozenset[str],
    dialect: Mapping[str, int | str] | None = None,
    said: Mapping[str, Any] | None = None,
    also: Collection[str] = (),
) -> UpdateAdapter:
    """Make the adapter. `can` says what the engine's caches have: `rewind`, `copy`, and `drafts` if a rewind
    always drops the newest tokens again. `also` names more abilities of the kind."""
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
        also=also,
        without=("bits",) if "copy" in can or "rewind" not in can else ("bits", "ask"),
        dialect={"mask.made": "after", **(dialect or {})},
        said={"limits": LIMITS, **(said or {})},
        **functions,
    )
