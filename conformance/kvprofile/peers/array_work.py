"""The work of every case on plain arrays, as written with an array library and no cache.

numpy and torch index alike, so the work is written once; a `Library` has the names that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from kvprofile.case import Case
from kvprofile.operation import Job
from kvprofile.peers import bucket, page, rope
from kvprofile.peers.correct import Clock, fastest
from kvprofile.peers.host_arrays import Library, Rows
from kvprofile.workloads.cache import BEYOND
from kvspec.forms import parsed

IN_A_FORM = " in a form"
"""What follows on the name of an operation over rows in a form."""

DECODED = ("int8", "q8_0", "e4m3", "e5m2")
"""The codes that libraries have as a dtype."""


def append(rows: Rows) -> Job:
    """Write rows behind the context of a buffer that has room."""
    case = rows.case
    caches, sources = rows.caches(2 * case.context), rows.caches(case.rows, 64, 1)
    runs = case.context // case.rows

    def do(i: int) -> None:
        at = case.context + i // len(caches) % runs * case.rows
        rows.write(caches[i % len(caches)], 2, at, sources[i % len(sources)])

    return Job(do)


def join(rows: Rows, held: int, more: int) -> Job:
    """Join rows that are held with more of them: a row, or the padding of the next bound."""
    caches, (new, *_) = rows.caches(held), rows.caches(more, 1, 1)
    return Job(lambda i: [rows.library.cat(pair, 2) for pair in zip(caches[i % len(caches)], new, strict=True)])


def save(rows: Rows) -> Job:
    """Copy into new memory."""
    caches = rows.caches(rows.case.context)
    return Job(lambda i: [rows.library.copy(a) for a in caches[i % len(caches)]])


def view(rows: Rows) -> Job:
    """Copy into new memory of the host."""
    caches, library = rows.caches(rows.case.context), rows.library
    return Job(lambda i: [library.landed(library.copy(a)) for a in caches[i % len(caches)]])


def restore(rows: Rows) -> Job:
    """Write saved rows over a context."""
    caches, saved = rows.caches(rows.case.context), rows.caches(rows.case.context, kind=1)
    return Job(lambda i: rows.write(caches[i % len(caches)], 2, 0, saved[i % len(saved)]))


def turn(rows: Rows) -> Job:
    """Write one row into the slot of the oldest, or join several behind the newest W - 1 in new memory."""
    case = rows.case
    rings, sources = rows.caches(case.context), rows.caches(case.rows, 64, 1)
    if case.rows == 1:
        return Job(
            lambda i: rows.write(
                rings[i % len(rings)], 2, (BEYOND + i // len(rings)) % case.context, sources[i % len(sources)]
            )
        )

    def do(i: int) -> None:
        for ring, new in zip(rings[i % len(rings)], sources[i % len(sources)], strict=True):
            rows.library.cat((ring[:, :, 1:], new), 2)

    return Job(do)


def straighten(rows: Rows) -> Job:
    """Join the rows behind the seam with those before it, in new memory of the host."""
    rings, library = rows.caches(rows.case.context), rows.library

    def do(i: int) -> None:
        for ring in rings[i % len(rings)]:
            library.landed(library.cat((ring[:, :, BEYOND + 1 :], ring[:, :, :BEYOND]), 2))

    return Job(do)


def copy(rows: Rows) -> Job:
    """Write rows `[n, kv_heads, dim]` into a buffer, which casts them."""
    case, heads = rows.case, rows.case.model.kv_heads
    head = case.layout == "head"
    sources = rows.pairs((case.rows, heads), dtype=case.source or case.dtype, kind=1)
    buffers = rows.pairs((heads, case.context) if head else (case.context, heads), 256)
    runs = case.context // case.rows

    def do(i: int) -> None:
        at = i // len(buffers) % runs * case.rows
        source = sources[i % len(sources)]
        turned = (source[0].swapaxes(0, 1), source[1].swapaxes(0, 1)) if head else source
        rows.write(buffers[i % len(buffers)], int(head), at, turned)

    return Job(do)


def layered(rows: Rows) -> Job:
    """Write rows of all layers into one array of all layers."""
    case, model = rows.case, rows.case.model
    stores = rows.pairs((model.layers, model.kv_heads, case.context), 256)
    sources = rows.pairs((model.layers, model.kv_heads, case.rows), kind=1)
    runs = case.context // case.rows
    return Job(
        lambda i: rows.write(
            stores[i % len(stores)], 2, i // len(stores) % runs * case.rows, sources[i % len(sources)]
        )
    )


def _batch(rows: Rows) -> tuple[Any, Any]:
    """Make keys and values `[layers, m, kv_heads, max_len, dim]`."""
    case, model = rows.case, rows.case.model
    return rows.pairs((model.layers, case.batch, model.kv_heads, case.context), 1)[0]


def step(rows: Rows) -> Job:
    """Write one row of every sequence and layer at once: all sequences have the same length."""
    case, model, batch = rows.case, rows.case.model, _batch(rows)
    sources = rows.pairs((model.layers, case.batch, model.kv_heads, 1))
    return Job(lambda i: rows.write(batch, 3, i % case.context, sources[i % len(sources)]))


def scatter(rows: Rows) -> Job:
    """Write a store's rows into one sequence's place."""
    case, model, batch = rows.case, rows.case.model, _batch(rows)
    (store, *_) = rows.pairs((model.layers, model.kv_heads, case.rows), 1, kind=1)
    return Job(lambda i: rows.write((batch[0][:, i % case.batch], batch[1][:, i % case.batch]), 2, 0, store))


def zero(rows: Rows) -> Job:
    """Write zeros everywhere."""
    case, model = rows.case, rows.case.model
    (store, *_) = rows.pairs((model.layers, model.kv_heads, case.context), 1)

    def do(i: int) -> None:
        for array in store:
            array[...] = 0

    return Job(do)


def attend(rows: Rows, behind: bool = True) -> Job:
    """Write rows behind the context (for a ring or store: into it), then attend over all."""
    case, queries = rows.case, rows.queries()
    held = case.context + case.rows if behind else case.context
    caches, sources = rows.caches(held), rows.caches(case.rows, 64, 1)

    def do(i: int) -> None:
        cache = caches[i % len(caches)]
        rows.write(cache, 2, held - case.rows, sources[i % len(sources)])
        rows.library.attend(queries, *cache)

    return Job(do)


def attend_batch(rows: Rows) -> Job:
    """Attend with one query for each sequence: all sequences have the same length."""
    queries, caches = rows.queries(), rows.caches(rows.case.context)
    return Job(lambda i: rows.library.attend(queries, *caches[i % len(caches)]))


def attend_ragged(rows: Rows) -> Job:
    """Attend with one query for each sequence over its own rows, one sequence after the other."""
    queries, caches = rows.queries(), rows.caches(rows.case.context)

    def do(i: int) -> None:
        keys, values = caches[i % len(caches)]
        for s, n in enumerate(rows.case.lengths):
            one = slice(s, s + 1)
            rows.library.attend(queries[one], keys[one, :, :n], values[one, :, :n])

    return Job(do)


def attend_decoded(rows: Rows) -> Job:
    """Write rows in their form behind the context, decode all, and attend: what a library does that cannot
    attend over such rows."""
    case, queries, library = rows.case, rows.queries(), rows.library
    caches, sources = rows.formed(case.context + case.rows), rows.caches(case.rows, 64, 1)

    def do(i: int) -> None:
        read = []
        for form, kept, new in zip(rows.forms, caches[i % len(caches)], sources[i % len(sources)], strict=True):
            for to, part in zip(kept, library.encoded(form, new), strict=True):
                library.write(to, 2, case.context, part)
            read.append(library.decoded(form, kept, case.dtype))
        library.attend(queries, *read)

    return Job(do)


WORK: dict[str, Callable[[Rows], Job]] = {
    "append": append,
    "grow": lambda rows: join(rows, rows.case.context, 1),
    "view": view,
    "snapshot": save,
    "restore": restore,
    "ring append": turn,
    "ring view": straighten,
    "copy": copy,
    "store append": layered,
    "zero": zero,
    "batch step": step,
    "captured step": step,
    "scatter": scatter,
    "attention": attend,
    f"attention{IN_A_FORM}": attend_decoded,
    "ring attention": lambda rows: attend(rows, behind=False),
    "batch attention": attend_batch,
    "ragged attention": attend_ragged,
    "captured attention": lambda rows: attend(rows, behind=False),
    "bucket block": lambda rows: attend(rows.layered()),
    "bucket crossing": lambda rows: join(rows.layered(), rows.case.context + 1, rows.case.context - 1),
    "bucket sync": lambda rows: view(rows.layered()),
    "encode": lambda rows: save(rows.layered()),
    "cross attention": lambda rows: attend_batch(rows.layered()),
    **page.WORK,
    **bucket.WORK,
    **rope.WORK,
}
"""The work of each operation."""


class ArrayPeer:
    """A peer that does all `WORK` with its library; of several forms of it, attention takes the fastest."""

    name = ""
    words = ""
    work: Mapping[str, Callable[[Rows], Job]] = MappingProxyType(WORK)
    elapsed: Clock | None = None
    """The device's clock for this peer's stream, where the profile has one."""

    def __init__(self, *forms: Library) -> None:
        self.forms = forms

    def job(self, case: Case, memory: int) -> Job | None:
        """Give the work of a case. Raises Wrong if its output is wrong."""
        from kvprofile.workloads import OPERATIONS

        make = self.work.get(case.operation if case.form is None else f"{case.operation}{IN_A_FORM}")
        if make is None or (case.form and any(form.codes not in DECODED for form in parsed(case.form))):
            return None
        if not OPERATIONS[case.operation].traffic(case).flops:
            return make(Rows(self.forms[0], case, memory))
        return fastest(self.forms, make, case, memory, self.wait, self.elapsed)

    def wait(self) -> None:
        """Do nothing: calls are done when they return."""
