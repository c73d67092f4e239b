"""The chapters of the spec: each has a text, such as `ring.md`, and a record, `ring.toml`. All other code reads
these.

A new chapter is a name below, these two files, and one file of its name in each room that it needs.
"""

CHAPTERS = (
    "growing",
    "ring",
    "bounded",
    "mask",
    "snapshot",
    "copy",
    "draft",
    "store",
    "batch",
    "mem",
    "residency",
    "attention",
    "page",
    "ragged",
    "bucket",
    "rope",
    "sink",
    "layers",
    "forms",
    "keyed",
    "questions",
    "parcels",
)
"""The chapters that an adapter can claim, in the order of the spec."""

GENERAL, LETTERS = "cache", "CACHE"
"""The chapter that says what holds for every kind, and the letters that begin its clause ids. It has a text and no
record. A claim of a kind claims it for that kind."""

TEXTS = (GENERAL, *CHAPTERS)
"""All chapters that have a text, in the order in which they are read."""
