"""Cost bounds of parcels: what is packed crosses once to the host, and what is unpacked once from it."""

from __future__ import annotations

from kvspec.costs.terms import BUFFER, ENTRY, PADDING, Bound, Case, Cost, bounded, nothing


def pack(case: Case) -> Cost:
    """Pack: only its rows cross; they may be gathered first, and sinks apart from others."""
    spans = case.got.values.get("spans") or []
    nbytes = sum(spans[1::2]) - sum(spans[::2])
    read = nbytes * case.config.row_bytes
    return bounded(
        "RESIDENCY-9", device_to_host=read, device_to_device=read, launches=2, allocations=2, synchronisations=4
    )


def unpack(case: Case) -> Cost:
    """Unpack: the rows cross once, and are written to new storage; a pool's table has an entry for each page."""
    rows, page = _offset(case), case.config.page_size
    nbytes, entries = rows * case.config.row_bytes, 2 + (-(-rows // page) if page else 0)
    arriving = Bound("RESIDENCY-2", {"host_to_device": nbytes + 2 * PADDING + entries * ENTRY, "device_to_host": 0})
    most = {
        "device_to_device": 2 * nbytes,
        "launches": 4,
        "allocations": 2 * BUFFER,
        "synchronisations": BUFFER + 1,
    }
    return Cost("from the host, new storage", (arriving, Bound("RESIDENCY-4", most)))


def _offset(case: Case) -> int:
    """Rows up to the offset that the cache, or a pool's new sequence, has now."""
    said, lengths = case.got.values.get("offset"), case.got.values.get("sequences") or [0]
    return int(max(lengths) if said is None else said)


def sent(case: Case) -> Cost:
    """End a transfer that sends: the rows cross as those that are packed do, by a table that is told."""
    entries = {"host_to_device": ENTRY * (case.config.pages or 0), "launches": 3 + (case.config.pages or 0)}
    found = pack(case).bounds[0]
    return Cost("by its table", (Bound(found.clause, {**found.most, **entries, "allocations": 3}),))


def bookkeeping(case: Case) -> Cost:
    """Begin a transfer, or end it without its rows: no row crosses. Pages that go back may be poisoned."""
    pages = case.config.pages or 0
    poisoned = pages if case.config.debug else 0
    return bounded(
        "PAGE-41", host_to_device=ENTRY * pages, launches=1 + poisoned, allocations=1, synchronisations=1
    )


arrive = unpack
send = expect = lose = bookkeeping
carry = collect = nothing
