"""The record of the chapter RESIDENCY."""

from __future__ import annotations

from kvspec.chapters.record import Chapter, Column, Probe, Value

METERED = ("host_to_device", "device_to_host", "device_to_device", "launches", "allocations", "synchronisations")
"""The counts of a meter: bytes copied to, from and on the device; launches, allocations, waits."""

CHAPTER = Chapter(
    "RESIDENCY",
    observe=("meter",),
    values=(Value("meter", "What the meter counted during the operation itself.", "counts"),),
    columns=tuple(Column(name, "count", "meter") for name in METERED),
    probes=(
        Probe(("append 1", "append 1 resident=1"), ("growing", "ring", "store")),
        Probe(("copy 1 0", "copy 1 0 resident=1"), ("copy",)),
        Probe(("admit", "append 1", "append 1 resident=1"), ("page",)),
    ),
)
