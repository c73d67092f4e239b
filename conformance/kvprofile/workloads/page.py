"""Paged caches: rows through block tables, gathered, shared by forks, attended to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kvprofile.case import Case
from kvprofile.operation import Job, Work
from kvprofile.subject import Subject
from kvprofile.workloads.attention import AROUND, fastest, queries
from kvspec import traffic
from kvspec.contract import Attention
from kvspec.geometry import Config

FORKS = 256
"""Most forks before all are dropped."""


Groups = Sequence[Sequence[int]]
"""The sequences of each batch."""


class Scattered(NamedTuple):
    """A paged cache, and its sequences that are measured."""

    cache: Any
    sequences: list[int]
    pages: int

    @property
    def about(self) -> dict[str, int]:
        """Say how large the pool is: as large as the rows to rotate through."""
        return {"pages": self.pages}


def scattered(subject: Subject, *lengths: int) -> Scattered:
    """Make sequences of these numbers of rows in one pool, again and again, with free pages for as many rows.

    Twice as many sequences are filled, one page of each at a time, in another order every time; then half are
    dropped. So neither the pages of a table nor the free pages are contiguous.
    """
    case, size = subject.case, _size(subject.case)
    count = subject.turns(max(case.context, sum(lengths)))
    pages = max(pages_for(case), sum(-(-rows // size) for rows in lengths))
    config = subject.config.changed(pages=2 * count * pages)
    cache, order = subject.open("page", config, count), np.random.default_rng(7)
    sequences = {cache.admit(): rows for rows in 2 * count * lengths}
    for first in range(0, max(lengths), size):
        there = {sequence: min(size, rows - first) for sequence, rows in sequences.items() if rows > first}
        new = {n: subject.rows(n, first // size) for n in set(there.values())}
        for sequence in order.permutation(list(there)).tolist():
            cache.append(*new[there[sequence]], sequence)
    numbers, kept = list(sequences), count * len(lengths)
    for sequence in numbers[kept:]:
        cache.drop(sequence)
    return Scattered(cache, numbers[:kept], config.pages or 0)


def pages_for(case: Case) -> int:
    """Count the pages that hold a context."""
    return -(-case.context // _size(case))


def partly(case: Case) -> int:
    """Count the rows in the shared last page, which a fork must copy before it writes."""
    return max(1, _size(case) // 2)


def _size(case: Case) -> int:
    assert case.page is not None
    return case.page


def append(subject: Subject) -> Job:
    """Append rows behind the context, into free pages."""
    case, pool = subject.case, scattered(subject, subject.case.context)
    cache, sequences, sources = pool.cache, pool.sequences, subject.several(subject.shapes(case.rows))

    def do(i: int) -> None:
        cache.append(*sources[i % len(sources)], sequences[i % len(sequences)])

    def reset() -> None:
        for sequence in sequences:
            cache.truncate(sequence, case.context)

    return Job(do, len(sequences) * (case.context // case.rows), reset, pool.about)


def gather(subject: Subject) -> Job:
    """Gather all rows through a table, to the host."""
    pool = scattered(subject, subject.case.context)
    tables = [pool.cache.table(sequence) for sequence in pool.sequences]
    return Job(lambda i: pool.cache.gather(tables[i % len(tables)], subject.case.context), about=pool.about)


def fork(subject: Subject) -> Job:
    """Fork a sequence just before the end of the context and append a row: the last shared page is not full, so it
    is copied."""
    case, pool = subject.case, scattered(subject, subject.case.context)
    cache, sequences, sources = pool.cache, pool.sequences, subject.several(subject.shapes(1))
    shared, forks = (pages_for(case) - 1) * _size(case) + partly(case), list[int]()

    def do(i: int) -> None:
        forks.append(cache.fork(sequences[i % len(sequences)], shared))
        cache.append(*sources[i % len(sources)], forks[-1])

    def reset() -> None:
        while forks:
            cache.drop(forks.pop())

    return Job(do, min(FORKS, len(sequences) * pages_for(case)), reset, pool.about)


def attend(subject: Subject) -> Job:
    """Append rows that complete the context, and attend with their queries through the table. Their page exists
    before."""
    case = subject.case
    before = case.context - case.rows
    pool, sources = scattered(subject, before), subject.several(subject.shapes(case.rows))
    asked, out = queries(subject)

    def do(i: int, how: Attention) -> None:
        sequence = pool.sequences[i % len(pool.sequences)]
        pool.cache.attend(asked, *sources[i % len(sources)], how, out, sequence)
        pool.cache.truncate(sequence, before)

    return fastest(subject, do, about=pool.about)


def attend_ragged(subject: Subject) -> Job:
    """Append a row to each sequence of a batch of unequal lengths, and attend with its query. This is one captured
    step of the batch if the adapter has one, else one sequence after the other."""
    lengths = [rows - 1 for rows in subject.case.lengths]
    pool = scattered(subject, *lengths)
    groups = list(zip(*[iter(pool.sequences)] * len(lengths), strict=True))
    work = _captured if hasattr(subject.adapter, "capture_pages") else _one_by_one
    return work(subject, pool, groups, lengths)


def _captured(subject: Subject, pool: Scattered, groups: Groups, lengths: list[int]) -> Job:
    """Replay a captured step of a group; each sequence may grow by `AROUND` rows before it is cut."""
    case, (asked, _) = subject.case, queries(subject, 1)
    capture = partial(subject.adapter.capture_pages, heads=case.model.heads, max_len=case.context + AROUND)
    steps = [capture(pool.cache, group) for group in groups]
    sources = subject.several([(1, case.batch, case.model.kv_heads, shape[3]) for shape in subject.shapes(1)])

    def do(i: int) -> None:
        steps[i % len(steps)].take(asked, *sources[i % len(sources)])
        steps[i % len(steps)].replay()

    def reset() -> None:
        for step in steps:
            for place, rows in enumerate(lengths):
                step.batch.cut(place, rows)

    return Job(do, AROUND * len(steps), reset, {**pool.about, "captured": True})


def _one_by_one(subject: Subject, pool: Scattered, groups: Groups, lengths: list[int]) -> Job:
    """Attend to each sequence of a group, one after another, and take the new rows back."""
    cache, sources, (asked, out) = pool.cache, subject.several(subject.shapes(1)), queries(subject)

    def do(i: int, how: Attention) -> None:
        for place, sequence in enumerate(groups[i % len(groups)]):
            one = slice(place, place + 1)
            cache.attend(asked[one], *sources[i % len(sources)], how, out[one], sequence)
            cache.truncate(sequence, lengths[place])

    return fastest(subject, do, about=pool.about)


def _config(case: Case) -> Config:
    return case.config(page_size=case.page, pages=2 * pages_for(case))


def _held(case: Case) -> int:
    return 2 * case.context * _config(case).row_bytes


def _attended(case: Case) -> traffic.Traffic:
    return traffic.attended(_config(case), case.model.heads, case.rows, case.context)


def _ragged(case: Case) -> traffic.Traffic:
    each = [traffic.attended(_config(case), case.model.heads, 1, rows) for rows in case.lengths]
    return traffic.total(each)


def _ragged_held(case: Case) -> int:
    return 2 * sum(case.lengths) * _config(case).row_bytes


WORK = {
    "page append": Work(_config, lambda case: traffic.appended(_config(case), case.rows), _held, append),
    "gather": Work(_config, lambda case: traffic.downloaded(_config(case), case.context), _held, gather),
    "fork": Work(_config, lambda case: traffic.forked(_config(case), partly(case), 1), _held, fork),
    "paged attention": Work(_config, _attended, _held, attend),
    "ragged paged attention": Work(_config, _ragged, _ragged_held, attend_ragged),
}
