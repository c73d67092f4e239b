"""Paged caches: rows through block tables, gathered, shared by forks, attended to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kvconform.profiling.case import Case
from kvconform.profiling.operation import Job, Work
from kvconform.profiling.subject import Subject
from kvconform.profiling.workloads.attention import fastest, queries
from kvspec import traffic
from kvspec.contract import Attention
from kvspec.geometry import Config

FORKS = 256
"""Most forks before all are dropped."""


class Scattered(NamedTuple):
    """A paged cache, and its sequences that are measured."""

    cache: Any
    sequences: list[int]
    pages: int

    @property
    def about(self) -> dict[str, int]:
        """Say how large the pool is: as large as the rows to rotate through."""
        return {"pages": self.pages}


def scattered(subject: Subject, rows: int) -> Scattered:
    """Make sequences of this many rows in one pool, with free pages for as many rows again.

    Twice as many sequences are filled, a page of each in turn, in another order every time; then half are dropped.
    So neither the pages of a table nor the free pages are contiguous.
    """
    count, size = subject.turns(subject.case.context), _size(subject.case)
    config = subject.config.changed(pages=2 * count * pages_for(subject.case))
    cache, order = subject.open("page", config, count), np.random.default_rng(7)
    sequences = [cache.admit() for _ in range(2 * count)]
    for first in range(0, rows, size):
        new = subject.rows(min(size, rows - first), first // size)
        for sequence in order.permutation(sequences).tolist():
            cache.append(*new, sequence)
    for sequence in sequences[count:]:
        cache.drop(sequence)
    return Scattered(cache, sequences[:count], config.pages or 0)


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


def _config(case: Case) -> Config:
    return case.config(page_size=case.page, pages=2 * pages_for(case))


def _held(case: Case) -> int:
    return 2 * case.context * _config(case).row_bytes


def _attended(case: Case) -> traffic.Traffic:
    return traffic.attended(_config(case), case.model.heads, case.rows, case.context)


WORK = {
    "page append": Work(_config, lambda case: traffic.moved(_config(case), case.rows), _held, append),
    "gather": Work(_config, lambda case: traffic.moved(_config(case), case.context), _held, gather),
    "fork": Work(_config, lambda case: traffic.forked(_config(case), partly(case), 1), _held, fork),
    "paged attention": Work(_config, _attended, _held, attend),
}
