"""node-llama-cpp in a process of Node.js: its context of several sequences, which it computes together.

Each request takes the free sequence that begins most alike. The package aligns it with the prompt: it erases rows
behind, or goes back to a checkpoint where a layer has a window. `block` is how many tokens lie between two of
them."""

from __future__ import annotations

from pathlib import Path

from kvadapters.serving.driver import Declared, Wanted
from kvadapters.serving.node import Node
from kvspec.errors import BadInput

PACKAGE = "node-llama-cpp"
TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0")
"""Forms of rows. Those below f32 take flash attention."""
BLOCK, CHUNK, SEQUENCES, LONGEST = 16, 32, 4, 512
"""Sizes where none are asked for."""


def driver(wanted: Wanted) -> Node:
    """Start it with a probe in GGUF. Raises BadInput for a form of rows or a size that it does not have, CannotRun
    where it is not installed."""
    wanted, rows = (
        wanted.only("block", "chunk", "sequences", "drafts", "longest", "rows"),
        wanted.rows or wanted.dtype,
    )
    if rows not in TYPES:
        raise BadInput(f"llama.cpp has rows of {', '.join(TYPES)}, not of {rows}")
    declared = Declared(
        PACKAGE,
        flags=f"rows {rows}",
        can=frozenset({"reuse", "concurrent", "cancel", "cached", "reset"}),
        block=wanted.block or BLOCK,
        chunk=wanted.chunk or CHUNK,
        drafts=wanted.drafts,
        sequences=wanted.sequences or SEQUENCES,
        longest=wanted.longest or LONGEST,
    )
    model = str(Path(wanted.folder, "model.gguf").resolve())
    script = Path(__file__).with_suffix(".mjs")
    started = Node(script, PACKAGE, {"model": model, "rows": rows.upper(), **declared.sizes()})
    started.declared = declared.with_words(f"version={started.version}")
    return started
