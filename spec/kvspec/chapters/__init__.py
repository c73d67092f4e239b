"""The chapters of the spec: of each its text, `ring.md`, and its record, `ring.py`. Everything else reads these.

A new chapter is a name below, these two files, and one file of its name in each room that it needs.
"""

CHAPTERS = (
    "growing",
    "ring",
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
    "bucket",
    "rope",
)
"""The chapters there are, in the order of the spec."""
