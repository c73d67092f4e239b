"""The serving engine of the examples behind a driver, and faults that are planted in it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kvadapters.serving.driver import CAN, Declared, Wanted
from kvadapters.serving.stepped import Stepped
from serving_engine import Engine, Settings
from serving_engine.model import Model

Plant = Callable[[Any], None]

SMALL = {"block_size": 4, "blocks": 20, "chunk": 8, "budget": 12, "sequences": 4, "drafts": 3}
"""An engine in which everything happens soon."""

THEIRS = {"block": "block_size", "blocks": "blocks", "chunk": "chunk", "drafts": "drafts", "sequences": "sequences"}
"""Sizes of an engine, and what its settings call them."""


@cache
def _model(folder: str) -> Model:
    return Model(Path(folder))


def driver(folder: str | Path, plant: Plant | None = None, **settings: Any) -> Stepped:
    """The engine with a small pool, with a fault if one is given."""
    chosen = Settings(**{**SMALL, **settings})

    def make() -> Engine:
        engine = Engine(_model(str(folder)), chosen)
        if plant:
            plant(engine)
        return engine

    sizes = {name: getattr(chosen, theirs) for name, theirs in THEIRS.items()}
    return Stepped(make, Declared("planted", can=frozenset(CAN), **sizes))


def right(wanted: Wanted) -> Stepped:
    """For `kvconform run --engine`."""
    asked = {THEIRS[name]: size for name, size in wanted.only(*THEIRS).sizes().items() if size}
    return driver(wanted.folder, **asked)


def wrong(wanted: Wanted) -> Stepped:
    """The same, with keys that leave out the tokens before a block."""
    return driver(wanted.folder, no_parent)


def no_parent(engine: Any) -> None:
    """The key of a block is made of its own tokens alone."""
    engine.tables.cache.key = lambda parent, tokens: hashlib.sha256(repr(list(tokens)).encode()).digest()


def short_key(engine: Any) -> None:
    """The key of a block leaves out its last token."""
    key = engine.tables.cache.key
    engine.tables.cache.key = lambda parent, tokens: key(parent, tokens[:-1])


def no_salt(engine: Any) -> None:
    """The salt is not part of a key."""
    root = engine.tables.cache.root
    engine.tables.cache.root = lambda salt: root("")


def found_for_ever(engine: Any) -> None:
    """A block that is taken for other rows is still found under its old key."""
    engine.tables.cache.forget = lambda block: False


def asks_one_layer(engine: Any) -> None:
    """What of a prefix is there is asked of the first group of layers; the others take whatever they have."""
    held = engine.tables.cache.held

    def anything(group: int, keys: Any, count: int) -> Any:
        found = held(group, keys, count)
        return [0] * count if found is None and group else found

    engine.tables.cache.held = anything


def _seen(engine: Any, change: Callable[[Any, Any, Any], Any]) -> None:
    """Change what queries see, of this engine alone."""
    model = object.__new__(type(engine.model))
    model.__dict__ |= engine.model.__dict__
    sees = model._sees
    model._sees = lambda piece, first, group: change(sees(piece, first, group), piece, (first, group))
    engine.model = model


def wide_window(engine: Any) -> None:
    """A window shows one row too many."""
    for group in engine.rows.groups:
        if group.window:
            object.__setattr__(group, "window", group.window + 1)


def forgets_the_chunk_before(engine: Any) -> None:
    """Queries of a later chunk do not see the last row of the chunk before it."""

    def change(seen: Any, piece: Any, where: Any) -> Any:
        if len(piece.tokens) > 1 and piece.start - 1 - where[0] >= 0:
            seen[:, piece.start - 1 - where[0]] = False
        return seen

    _seen(engine, change)


def shared_last_block(engine: Any) -> None:
    """Samples write into the last block of their prompt, which they share."""
    engine.tables.shared = lambda sequence, table: []


def cancelled_twice(engine: Any) -> None:
    """The blocks of a request that is cancelled are given back twice."""
    abort, pool = engine.abort, engine.tables.pool

    def twice(number: int) -> None:
        found = [s for s in engine.scheduler.all() if s.request.id == number]
        blocks = [block for s in found for table in s.tables for block in table]
        abort(number)
        for block in blocks:
            if pool.counts[block] > 0:
                pool.give_back(block, useless=True)

    engine.abort = twice


def keeps_rejected_drafts(engine: Any) -> None:
    """The row of the first draft that was rejected stays in the place of the right token's."""
    choose, write, stale = engine.choose, engine.rows.write, set[tuple[int, int]]()

    def noting(sequence: Any, work: Any, logits: Any) -> Any:
        end, tables = work.end, [list(table) for table in sequence.tables]
        found = choose(sequence, work, logits)
        if work.drafts and sequence.computed < end and not found:
            for group, table in zip(engine.rows.groups, tables, strict=True):
                block, behind = divmod(sequence.computed, engine.rows.size)
                stale.update(
                    (place, table[block] * engine.rows.size + behind) for place in range(len(group.layers))
                )
        return found

    def leaving(place: int, slots: Any, keys: Any, values: Any) -> None:
        kept = np.array([(place, int(slot)) not in stale for slot in slots])
        stale.difference_update({(place, int(slot)) for slot in slots})
        write(place, slots[kept], keys[kept], values[kept])

    engine.choose, engine.rows.write = noting, leaving


def resumes_without_its_answer(engine: Any) -> None:
    """A request that is preempted comes back as if its answer so far had been one token shorter in its rows."""
    preempt = engine.scheduler.preempt

    def losing(sequence: Any) -> None:
        preempt(sequence)
        if len(sequence.chosen) > 1:
            sequence.tokens[-2], sequence.tokens[-1] = sequence.tokens[-1], sequence.tokens[-2]

    engine.scheduler.preempt = losing


def reads_a_neighbours_block(engine: Any) -> None:
    """In a step of several requests the last one reads its first block from the first one's table."""
    forward = engine.model.forward
    model = object.__new__(type(engine.model))
    model.__dict__ |= engine.model.__dict__

    def mixed(pieces: Any, rows: Any) -> Any:
        if len(pieces) > 1 and len(pieces[-1].tokens) == 1 and pieces[-1].start >= rows.size:
            for mine, other in zip(pieces[-1].tables, pieces[0].tables, strict=True):
                if mine and other and mine[0] and other[0]:
                    mine[0] = other[0]
        return forward(pieces, rows)

    model.forward = mixed
    engine.model = model


def computes_nothing(engine: Any) -> None:
    """A prompt that is there as a whole counts as reused as a whole."""
    output = engine.advance

    def whole(work: Any, logits: Any) -> Any:
        sequence = work.sequence
        if sequence.reused and len(sequence.request.prompt) - sequence.reused <= engine.rows.size:
            sequence.reused = len(sequence.request.prompt)
        return output(work, logits)

    engine.advance = whole


FAULTS: dict[Plant, tuple[str, ...]] = {
    no_parent: ("SERVE-3",),
    short_key: ("SERVE-2", "SERVE-4", "SERVE-3", "SERVE-7"),
    no_salt: ("SERVE-8",),
    cancelled_twice: ("SERVE-13",),
    asks_one_layer: ("SERVE-6", "SERVE-10"),
    wide_window: ("SERVE-1",),
    forgets_the_chunk_before: ("SERVE-11",),
    shared_last_block: ("SERVE-14",),
    found_for_ever: ("SERVE-9",),
    keeps_rejected_drafts: ("SERVE-16",),
    resumes_without_its_answer: ("SERVE-10",),
    reads_a_neighbours_block: ("SERVE-12",),
    computes_nothing: ("SERVE-5",),
}
"""Faults, and the clauses that each may be blamed on, the best first."""
