"""Cost bounds of parcels: what is packed crosses once to the host, and what is unpacked once from it."""

from __future__ import annotations

from collections.abc import Sequence

from kvspec.costs.terms import BUFFER, ENTRY, PADDING, Bound, Case, Cost, bounded, nothing


def pack(case: Case) -> Cost:
    """Pack: only its rows cross. They may be gathered first, and sinks apart from others. Each layer does so."""
    spans = [name for name in case.got.values if name.partition(".")[0] == "spans"]
    read = sum(_bytes(case, name.partition(".")[2], _rows(case.got.values[name])) for name in spans)
    most = {"launches": 2, "allocations": 2, "synchronisations": 4}
    each = {name: n * max(1, len(spans)) for name, n in most.items()}
    return bounded("RESIDENCY-9", device_to_host=read, device_to_device=read, **each)


def _rows(spans: Sequence[int]) -> int:
    """How many rows there are at positions in pairs."""
    return sum(spans[1::2]) - sum(spans[::2])


def _bytes(case: Case, layer: str, rows: int) -> int:
    """The bytes of so many rows of a layer, or of a cache without layers. A state is one row of f32."""
    config = case.config
    if layer and (config.of or "").split(",")[int(layer)] == "state":
        return rows * config.kv_heads * config.k_dim * config.v_dim * 4
    return rows * config.row_bytes


def unpack(case: Case) -> Cost:
    """Unpack: the rows cross once, and are written to new storage, by each layer of several. A pool's table has an
    entry for each page."""
    if case.config.of is not None:
        arrived = [_bytes(case, layer, rows) for layer, rows in case.arrived.items() if layer]
        return _new_storage(sum(arrived), 2, max(1, len(arrived)))
    rows, page = _offset(case), case.config.page_size
    return _new_storage(rows * case.config.row_bytes, 2 + (-(-rows // page) if page else 0))


def _new_storage(nbytes: int, entries: int, layers: int = 1) -> Cost:
    """The cost of so many bytes that arrive, and as many entries for each layer."""
    beside = layers * (2 * PADDING + entries * ENTRY)
    arriving = Bound("RESIDENCY-2", {"host_to_device": nbytes + beside, "device_to_host": 0})
    most = {"launches": 4, "allocations": 2 * BUFFER, "synchronisations": BUFFER + 1}
    each = {name: n * layers for name, n in most.items()}
    return Cost(
        "from the host, new storage", (arriving, Bound("RESIDENCY-4", {"device_to_device": 2 * nbytes, **each}))
    )


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
