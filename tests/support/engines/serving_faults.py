"""More faults of the serving engine of the examples, by the part that each is planted in."""

from __future__ import annotations

from typing import Any

import numpy as np

from serving_engine.blocks import NULL


def key_ignores_order(engine: Any) -> None:
    """The key of a block is made of its tokens in any order."""
    key = engine.tables.cache.key
    engine.tables.cache.key = lambda parent, tokens: key(parent, sorted(tokens))


def salt_by_its_length(engine: Any) -> None:
    """Salts that are as long as each other are one."""
    root = engine.tables.cache.root
    engine.tables.cache.root = lambda salt: root(str(len(salt)))


def reuses_the_last_token(engine: Any) -> None:
    """A text that is cached as a whole is reused as a whole, so that nothing is left to compute."""
    cache = engine.tables.cache
    cache.usable = lambda rows: rows // cache.size


def one_key_for_all_layers(engine: Any) -> None:
    """A block of one group of layers is found for the others."""
    cache = engine.tables.cache
    publish = cache.publish

    def everywhere(group: int, key: bytes, block: int) -> None:
        publish(group, key, block)
        for other in range(len(cache.groups)):
            cache.blocks.setdefault((other, key), block)

    cache.publish = everywhere


def window_hit_lacks_a_block(engine: Any) -> None:
    """A hit takes one block too few of what a window sees."""
    cache = engine.tables.cache
    held = cache.held

    def fewer(group: int, keys: Any, count: int) -> Any:
        table = held(group, keys, count)
        first = next((i for i, block in enumerate(table or ()) if block != NULL), None)
        if table and first is not None and cache.groups[group].window:
            table[first] = NULL
        return table

    cache.held = fewer


def skips_a_token_behind_a_hit(engine: Any) -> None:
    """Behind a hit, computing begins one token too late."""
    reuse = engine.tables.reuse

    def late(sequence: Any) -> None:
        reuse(sequence)
        if sequence.computed and len(sequence.tokens) - sequence.computed > 1:
            sequence.computed += 1

    engine.tables.reuse = late


def gives_window_rows_back_early(engine: Any) -> None:
    """A block of a window's rows is given back while its last row is still seen."""
    commit, tables = engine.tables.commit, engine.tables

    def early(sequence: Any) -> None:
        commit(sequence)
        for group, table in zip(tables.rows.groups, sequence.tables, strict=True):
            index = (group.first(sequence.computed) + 1) // tables.size - 1
            if group.window and 0 <= index < len(table):
                tables.give_back(table[index])
                table[index] = NULL

    engine.tables.commit = early


def forks_without_counting(engine: Any) -> None:
    """Samples have the blocks of their prompt, and nobody counts it."""
    fork, pool = engine.tables.fork, engine.tables.pool

    def uncounted(parent: Any, sample: int) -> Any:
        share, pool.share = pool.share, lambda block: None
        try:
            return fork(parent, sample)
        finally:
            pool.share = share

    engine.tables.fork = uncounted


def resumes_in_its_old_blocks(engine: Any) -> None:
    """A request that was preempted goes on in the blocks that it had, whatever was written to them."""
    preempt, reuse, tables, had = engine.scheduler.preempt, engine.tables.reuse, engine.tables, dict[int, Any]()

    def noting(sequence: Any) -> None:
        had[id(sequence)] = [list(table) for table in sequence.tables], sequence.computed, sequence.published
        preempt(sequence)

    def again(sequence: Any) -> None:
        old, computed, published = had.pop(id(sequence), ((), 0, 0))
        if not computed:
            reuse(sequence)
            return
        sequence.tables, sequence.computed, sequence.published = old, computed, published
        for block in (b for table in old for b in table):
            tables.cache.forget(block)
            tables.pool.share(block)

    engine.scheduler.preempt, engine.tables.reuse = noting, again


def resumes_from_its_prompt(engine: Any) -> None:
    """A request that was preempted begins its answer again, behind what it has answered."""
    preempt = engine.scheduler.preempt

    def again(sequence: Any) -> None:
        preempt(sequence)
        del sequence.tokens[len(sequence.request.prompt) :]
        sequence.keys = sequence.keys[: len(sequence.tokens) // engine.tables.size]

    engine.scheduler.preempt = again


def _seen(engine: Any, change: Any) -> None:
    """Change what queries see, of this engine alone."""
    model = object.__new__(type(engine.model))
    model.__dict__ |= engine.model.__dict__
    sees = model._sees
    model._sees = lambda piece, first, group: change(sees(piece, first, group), piece, first, group)
    engine.model = model


def sees_ahead_in_a_chunk(engine: Any) -> None:
    """Queries of a chunk, but for its last, see the row behind them."""

    def change(seen: Any, piece: Any, first: int, group: Any) -> Any:
        for query in range(len(piece.tokens) - 1):
            seen[query, piece.start + query + 1 - first] = True
        return seen

    _seen(engine, change)


def window_of_the_first_query(engine: Any) -> None:
    """All queries of a later chunk see as far back as its first one."""

    def change(seen: Any, piece: Any, first: int, group: Any) -> Any:
        if group.window and piece.start and len(piece.tokens) > 1:
            rows, queries = np.arange(first, piece.end), np.arange(piece.start, piece.end)
            return (rows <= queries[:, None]) & (rows > piece.start - group.window)
        return seen

    _seen(engine, change)


def cancelled_rows_are_found(engine: Any) -> None:
    """The blocks of a request that is cancelled can be found, those too that were not computed."""
    abort, tables = engine.abort, engine.tables

    def early(number: int) -> None:
        for sequence in engine.scheduler.all():
            if sequence.request.id == number and sequence.tables and sequence.tables[0]:
                end = min(len(sequence.tokens), (len(sequence.tables[0]) + 1) * tables.size)
                if tables.reserve(sequence, end):
                    sequence.computed = end
                    tables.publish(sequence)
        abort(number)

    engine.abort = early


def swaps_answers_of_a_step(engine: Any) -> None:
    """Where two requests end in one step, each gets the logprobs of the other, if both have as many."""
    step = engine.step

    def swapped() -> Any:
        outputs = step()
        if len(outputs) == 2 and len({output.logprobs.shape for output in outputs}) == 1:
            a, b = (output.logprobs.copy() for output in outputs)
            outputs[0].logprobs[:], outputs[1].logprobs[:] = b, a
        return outputs

    engine.step = swapped


def accepts_the_second_draft_unseen(engine: Any) -> None:
    """Where a draft is right, the one behind it is taken for right."""
    verified = engine.speculation.verified

    def trusting(drafts: Any, chosen: Any) -> Any:
        tokens = list(verified(drafts, chosen))
        return [tokens[0], drafts[1]] if len(drafts) > 1 and len(tokens) == 2 else tokens

    engine.speculation.verified = trusting


PREFIX = ("SERVE-2", "SERVE-3", "SERVE-4", "SERVE-7")

MORE = {
    key_ignores_order: PREFIX,
    salt_by_its_length: ("SERVE-8",),
    reuses_the_last_token: ("SERVE-5",),
    one_key_for_all_layers: ("SERVE-6", *PREFIX),
    window_hit_lacks_a_block: ("SERVE-6",),
    skips_a_token_behind_a_hit: PREFIX,
    gives_window_rows_back_early: ("SERVE-1", "SERVE-11"),
    forks_without_counting: ("SERVE-14",),
    resumes_in_its_old_blocks: ("SERVE-10",),
    resumes_from_its_prompt: ("SERVE-10",),
    sees_ahead_in_a_chunk: ("SERVE-1",),
    window_of_the_first_query: ("SERVE-11",),
    cancelled_rows_are_found: ("SERVE-13",),
    swaps_answers_of_a_step: ("SERVE-12",),
    accepts_the_second_draft_unseen: ("SERVE-16", "SERVE-15"),
}
"""Faults, and the clauses that each may be blamed on, the best first."""
