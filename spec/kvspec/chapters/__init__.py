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
)
"""All chapters, in the order of the spec."""
