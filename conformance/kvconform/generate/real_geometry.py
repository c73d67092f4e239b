"""The same trace at the geometry of a released model: as wide, with as many heads, sequences and layers.

Kernels change what they do at such sizes: another tile, another grid, one more wave. What was done to the last
layer, or to the last sequence of a store's batch, is done to the last one again. Each sequence of a padded batch
becomes several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any

from kvspec.contract import Description
from kvspec.geometry import MOST_LISTED, OWN, Config, forms, heads_of, valid
from kvspec.geometry import SIZES as FIELDS
from kvspec.operations.table import (
    ARGUMENTS,
    OPEN,
    RUN,
    TAKES_QUERIES,
    Operation,
    argument,
    cache_of,
    listed,
    numbers_in,
    parts_of,
)
from kvspec.registry import fields_of, named_abilities
from kvspec.trace import Trace, caches_of, opening, replayable


@dataclass(frozen=True)
class Geometry:
    """Sizes of a cache. `batch` holds where it has several sequences, `layers` where it has several layers."""

    name: str
    kv_heads: int
    k_dim: int
    v_dim: int
    batch: int
    layers: int


GEOMETRIES = (
    Geometry("latent", 1, 576, 512, 17, 2),
    Geometry("many heads", 64, 64, 72, 2, 2),
    Geometry("wide heads", 9, 264, 256, 2, 2),
    Geometry("many layers", 5, 24, 20, 1, 61),
    Geometry("many sequences", 4, 24, 20, 33, 2),
)
"""Latent rows and layers as of DeepSeek, heads as of Llama 70B, wide heads as of Gemma, a batch as of a server.
Each lies beyond several boundaries at once."""

Boundaries = Mapping[str, tuple[int, ...]]
"""Classes of sizes, by the first size of each."""

BOUNDARIES: Boundaries = {
    "kv_heads": (5, 9, 33),
    "k_dim": (17, 64, 128, 256),
    "v_dim": (17, 64, 128, 256),
    "batch": (4, 9, 17),
    "layers": (9, 33),
}
"""Classes of geometry: sizes from which on a kernel may do something else."""

ROWS = {"kv_heads": 1, "k_dim": 2, "v_dim": 2}
SIZES = ROWS | {"batch": 1, "layers": 1}
"""The fields that a geometry gives, and how far they move away from a size that an operation names."""

LAYERED = frozenset(name for name, field in OWN.items() if field.layered)
"""The fields that say what each layer is."""

MOST_HEADS, MOST_SEQUENCES = 64, 32
"""The most query heads of an operation, and the sequences that every store's batch may have."""


MOST_WORK = 1 << 22
"""Products that attention may take in a drawn trace: strict attention in numpy does some millions a second."""


def work(trace: Trace) -> int:
    """Bound the products that the attention of a trace takes, as if every query saw every row."""
    parts = trace.one_by_one().ops
    asks = [part for part in parts if part["op"] in TAKES_QUERIES]
    sequences, heads = (max(part.get(name) or 1 for part in parts) if parts else 1 for name in ("m", "heads"))
    config, rows = trace.config, sum(max(1, part.get("n") or 1) for part in parts)
    each = max(config.batch, sequences) * max(config.kv_heads, heads) * (config.layers or 1)
    queries = sum(max(1, part.get("n") or 1) for part in asks)
    return queries * rows * each * (config.k_dim + config.v_dim)


Met = frozenset[tuple[str, int]]
"""Boundaries that a cache lies beyond, each with the name of its size."""


def beyond(config: Config, sequences: int = 0, boundaries: Boundaries = BOUNDARIES) -> Met:
    """Give the boundaries that a cache of this config lies beyond. `sequences` is the number of sequences in a
    store's batch."""
    sizes = {name: getattr(config, name) or 0 for name in boundaries}
    sizes["batch"] = max(sizes["batch"], sequences)
    return frozenset((name, least) for name, each in boundaries.items() for least in each if sizes[name] >= least)


WITH = "with"
"""How the name of an option begins."""


def options(kind: str, config: Config) -> Iterator[str]:
    """Name what a config says beside sizes: its words, what its layers are, and what it leaves out."""
    for name in fields_of(kind):
        said = getattr(config, name)
        if said is None:
            yield f"{WITH} no {name}"
        elif name in LAYERED:
            yield from (f"{WITH} {name}={layer.partition(':')[0]}" for layer in said.split(","))
        else:
            yield f"{WITH} {name}={said}" if OWN[name].words else f"{WITH} {name}"


def within(geometry: Geometry, adapter: Description) -> Geometry:
    """Give the geometry with no more heads and sequences than an adapter takes. Its widths are fitted later."""
    heads = min(geometry.kv_heads, adapter.most_heads or geometry.kv_heads)
    return replace(geometry, kv_heads=heads, batch=min(geometry.batch, adapter.largest_batch or geometry.batch))


def at(trace: Trace, geometry: Geometry) -> Trace | None:
    """Give the trace at a geometry, or None where no cache opens, or the replay would cost too much."""
    if not valid(trace.config):
        return None
    moved = _Moved(trace, _unlike(trace, geometry)).trace()
    opens = moved.config.form is None or forms(moved.config) is not None
    return moved if opens and replayable(moved) else None


def _unlike(trace: Trace, geometry: Geometry) -> Geometry:
    """Change sizes that operations name, so that rows that do not fit still do not fit."""
    parts = [part for op in trace.ops for part in parts_of(op)]
    for name, by in SIZES.items():
        named = {part.get(name) for part in parts}
        while getattr(geometry, name) in named:
            geometry = replace(geometry, **{name: getattr(geometry, name) + by})
    return geometry


def _rank(config: Config, times: int) -> str | None:
    """Name the heads of a rank, each of which became several."""
    first, _, all_ = heads_of(config)
    return f"{first * times}/{all_ * times}" if config.rank else None


@dataclass
class _Cache:
    """A cache of the trace: as it was, and as it is now."""

    was: Config
    now: Config
    copies: int
    """Sequences that each sequence of a padded batch became."""
    sequences: tuple[int, int] = (0, 0)
    """Sequences of a store's batch, as there were and as there are."""


class _Moved:
    """A trace on its way to a geometry."""

    def __init__(self, trace: Trace, geometry: Geometry) -> None:
        self._was, self._geometry = trace, geometry
        ranks = any(config.rank is not None for config in caches_of(trace))
        self._times = -(-geometry.kv_heads // trace.config.kv_heads) if ranks else None
        """How many each head becomes, where caches have a share of the heads: it stays the same share."""
        self._caches = {"A": self._cache(trace.kind, trace.config)}

    def trace(self) -> Trace:
        """Give the trace at the geometry."""
        config = self._caches["A"].now
        return Trace(self._was.kind, config, tuple(map(self._operation, self._was.ops)))

    def _cache(self, kind: str, config: Config) -> _Cache:
        fields, copies = {name: getattr(self._geometry, name) for name in ROWS}, 1
        fields |= _layered(config, self._geometry.layers)
        if self._times is not None:
            fields |= {"kv_heads": config.kv_heads * self._times, "rank": _rank(config, self._times)}
        if config.padding is not None:
            copies = -(-self._geometry.batch // config.batch)
            fields["batch"] = config.batch * copies
        elif config.bounds is not None or any(each.config == "batch" for each in named_abilities(kind)):
            fields["batch"] = self._geometry.batch
        return _Cache(config, config.changed(**fields), copies)

    def _operation(self, op: Operation) -> Operation:
        if op["op"] == RUN.name:
            return {**op, "ops": list(map(self._operation, op["ops"]))}
        if op["op"] == OPEN.name:
            return self._opened(op)
        cache = self._caches.get(cache_of(op))
        if cache is None:
            return op
        moved = op | _heads(op, cache) | _last(op, cache) | _several(op, cache)
        return moved | self._noted(op, cache)

    def _noted(self, op: Operation, cache: _Cache) -> Operation:
        """Note what an operation makes of a cache. Give the sequences of a store's batch."""
        if op["op"] == "init":
            said = {name: op[name] for name in FIELDS if op.get(name) is not None}
            cache.was, cache.now = cache.was.changed(**said), cache.now.changed(**said)
        if "others" in op:
            cache.copies = 1
        if "m" in op and op.get("most") is None and 1 <= op["m"] <= MOST_SEQUENCES:
            cache.sequences = op["m"], max(op["m"], min(self._geometry.batch, MOST_SEQUENCES))
            return {"m": cache.sequences[1]}
        return {}

    def _opened(self, op: Operation) -> Operation:
        """A cache of another kind says how many layers and sequences it has. Rows that it says itself stay."""
        kind, config = opening(self._was, op)
        if not valid(config):
            return op
        cache = self._caches[cache_of(op)] = self._cache(kind, config)
        said = {name: op[name] for name in FIELDS if op.get(name) is not None}
        texts = [name for name in LAYERED if getattr(config, name) is not None]
        layers = ("layers",) if argument(op, "kind") or texts else ()
        counts = ("batch",) if config.padding is not None else layers
        ranks = ("kv_heads", "rank") if self._times is not None else ()
        said |= {name: getattr(cache.now, name) for name in (*counts, *ranks) if op.get(name) is not None}
        said |= {name: getattr(cache.now, name) for name in texts if not {"layers", name}.isdisjoint(op)}
        cache.now = cache.now.changed(**said)
        return op | said


def _layered(config: Config, layers: int) -> dict[str, Any]:
    """Give the fields for that many layers. Where a text says what each layer is, repeat it, at least twice, to
    come near that number."""
    texts = {name: text for name in LAYERED if (text := getattr(config, name)) is not None}
    if config.layers is None or not texts:
        return {} if config.layers is None else {"layers": layers}
    most = min(MOST_LISTED[name] // len(text.split(",")) for name, text in texts.items())
    times = max(2, min(layers // config.layers, most))
    return {"layers": times * config.layers} | {name: ",".join([text] * times) for name, text in texts.items()}


def _heads(op: Operation, cache: _Cache) -> Operation:
    """As many query heads for each head as there may be, where there were several; and what is said of each."""
    each, rest = divmod(op.get("heads") or cache.was.kv_heads, cache.was.kv_heads)
    if "heads" not in ARGUMENTS[op["op"]] or not each or rest:
        return {}
    most = max(1, MOST_HEADS // cache.now.kv_heads) if each > 1 else 1
    heads, changed = most * cache.now.kv_heads, {"heads": most * cache.now.kv_heads} if op.get("heads") else {}
    said = numbers_in(op["head_sinks"]) if op.get("head_sinks") else []
    whole = len(said) == each * cache.was.kv_heads
    return changed | ({"head_sinks": listed(islice(cycle(said), heads))} if whole else {})


def _last(op: Operation, cache: _Cache) -> Operation:
    """Layers, and sequences of a store's batch, counted from the last one."""
    layers = cache.was.layers or 0, cache.now.layers or 0
    counts = {"layer": layers, "sequence": cache.sequences}
    named = ((name, op[name], *counts[name]) for name in counts if op.get(name) is not None)
    return {name: x if x < was - 1 else x + now - was for name, x, was, now in named}


def _several(op: Operation, cache: _Cache) -> Operation:
    """Lists of a padded batch, with an entry for each of the sequences that a sequence became."""
    copies, changed = range(cache.copies), dict[str, Any]()
    for name in {"lengths", "counts"} & set(op):
        changed[name] = listed(n for n in numbers_in(op[name]) for _ in copies)
    if "order" in op:
        changed["order"] = listed(n * len(copies) + i for n in numbers_in(op["order"]) for i in copies)
    if cache.was.padding is not None and op.get("sequence") is not None:
        changed["sequence"] = op["sequence"] * len(copies)
    return changed
