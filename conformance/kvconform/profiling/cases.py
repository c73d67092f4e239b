"""The table of cases to profile: operations over real model shapes, contexts of 1k to 32k, every dtype."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kvconform.profiling.case import Case
from kvconform.profiling.model_shapes import GEMMA, GPT2, LLAMA_8B, LLAMA_70B, MISTRAL, PHI, QWEN
from kvspec.errors import BadInput

CONTEXTS = (1024, 4096, 32768)
CHUNK = 512
"""Rows of a chunk of a prefill."""

PAGES = (16, 64)
"""Rows of a page: a common number, and a larger one."""


def table() -> tuple[Case, ...]:
    """Give every case, in the order of measurement."""
    parts = _appends, _rings, _saved, _copies, _stores, _attentions, _pages, _buckets, _turned
    return tuple(case for part in parts for case in part())


def _appends() -> Iterator[Case]:
    for rows in (1, CHUNK):
        yield from (Case("append", LLAMA_8B, context, rows) for context in CONTEXTS)
        yield from (
            Case("append", model, 4096 if model is not GPT2 else 1024, rows) for model in (QWEN, GEMMA, PHI, GPT2)
        )
        yield Case("append", LLAMA_8B, 4096, rows, batch=8)
    yield Case("append", LLAMA_8B, 4096, CHUNK, dtype="f32")
    yield Case("append", LLAMA_8B, 4096, CHUNK, dtype="bf16")
    yield from (Case("grow", LLAMA_8B, context) for context in (4096, 32768))
    yield Case("rewind", LLAMA_8B, 4096)


def _rings() -> Iterator[Case]:
    full = [(model, model.window) for model in (MISTRAL, GEMMA) if model.window is not None]
    for rows in (1, CHUNK):
        yield from (Case("ring append", model, window, rows) for model, window in full)
    yield from (Case("ring view", model, window) for model, window in full)


def _saved() -> Iterator[Case]:
    for operation in ("view", "snapshot", "restore"):
        yield from (Case(operation, LLAMA_8B, context) for context in CONTEXTS)
        yield Case(operation, PHI, 4096)


def _copies() -> Iterator[Case]:
    for layout in ("token", "head"):
        yield Case("copy", LLAMA_8B, 32768, CHUNK, layout=layout)
        yield from (
            Case("copy", LLAMA_8B, 32768, CHUNK, dtype=d, source="f32", layout=layout) for d in ("f16", "bf16")
        )
    yield Case("copy", PHI, 4096, CHUNK, source="f32", layout="head")


def _stores() -> Iterator[Case]:
    for model in (LLAMA_8B, QWEN, GPT2):
        yield from (Case("store append", model, 1024, rows) for rows in (1, 128))
    yield Case("zero", LLAMA_8B, 1024)
    for operation in ("batch step", "captured step"):
        yield from (Case(operation, model, 256, batch=8) for model in (LLAMA_8B, QWEN))
    yield from (Case("scatter", model, 256, 256, batch=8) for model in (LLAMA_8B, QWEN))


def _attentions() -> Iterator[Case]:
    yield from (Case("attention", LLAMA_8B, context) for context in CONTEXTS)
    yield from (Case("attention", LLAMA_8B, context, dtype="f32") for context in (4096, 32768))
    yield Case("attention", LLAMA_8B, 4096, dtype="bf16")
    yield Case("attention", LLAMA_8B, 4096, batch=8)
    yield Case("attention", LLAMA_8B, 4096, 4)
    yield from (Case("attention", model, 4096) for model in (LLAMA_70B, QWEN, GEMMA, PHI))
    yield Case("attention", GPT2, 1024)
    yield from (Case("ring attention", model, model.window) for model in (MISTRAL, GEMMA) if model.window)
    yield from (Case("batch attention", LLAMA_8B, context, batch=8) for context in (1024, 4096))
    yield from (Case("captured attention", LLAMA_8B, context) for context in (1024, 4096))
    yield Case("rope attention", LLAMA_8B, 4096, pairing="neox")


def _pages() -> Iterator[Case]:
    yield Case("page append", LLAMA_8B, 4096, page=16)
    yield from (Case("page append", LLAMA_8B, 4096, CHUNK, page=size) for size in PAGES)
    yield from (Case("gather", LLAMA_8B, 4096, page=size) for size in PAGES)
    yield Case("gather", LLAMA_8B, 32768, page=16)
    yield from (Case("fork", LLAMA_8B, 4096, page=size) for size in PAGES)
    yield from (Case("paged attention", LLAMA_8B, context, page=16) for context in CONTEXTS)
    yield Case("paged attention", LLAMA_8B, 4096, page=64)
    yield Case("paged attention", LLAMA_8B, 4096, dtype="f32", page=16)
    yield Case("paged attention", QWEN, 4096, page=16)


def _buckets() -> Iterator[Case]:
    yield Case("bucket decode", GPT2, 1024)
    yield Case("bucket decode", LLAMA_8B, 256)
    yield Case("bucket block", GPT2, 1024, 4)
    yield Case("bucket crossing", GPT2, 512)
    yield Case("bucket crossing", LLAMA_8B, 256)
    yield from (Case(operation, GPT2, 1024) for operation in ("bucket sync", "encode", "cross attention"))


def _turned() -> Iterator[Case]:
    yield from (Case("rotate", LLAMA_8B, 4096, rows, pairing="neox") for rows in (1, CHUNK, 4096))
    yield Case("rotate", LLAMA_8B, 4096, CHUNK, pairing="norm")


QUICK = (
    Case("append", GPT2, 64),
    Case("append", GPT2, 64, 16),
    Case("rewind", GPT2, 64),
    Case("ring append", GPT2, 64, 16),
    Case("view", GPT2, 64),
    Case("snapshot", GPT2, 64),
    Case("copy", GPT2, 64, 16, source="f32", layout="head"),
    Case("store append", GPT2, 64),
    Case("zero", GPT2, 64),
    Case("batch step", GPT2, 32, batch=2),
    Case("attention", GPT2, 64),
    Case("batch attention", GPT2, 64, batch=2),
    Case("captured attention", GPT2, 64),
    Case("page append", GPT2, 64, page=16),
    Case("gather", GPT2, 64, page=16),
    Case("fork", GPT2, 64, page=16),
    Case("paged attention", GPT2, 64, page=16),
    Case("bucket decode", GPT2, 64),
    Case("bucket crossing", GPT2, 64),
    Case("rotate", GPT2, 64, 16, pairing="neox"),
)
"""A few small cases, to check that a profile works; their numbers say little."""


def selected(quick: bool, pattern: str | None) -> tuple[Case, ...]:
    """Select the cases whose id matches a pattern. Raises BadInput if it is not a regular expression or matches
    none."""
    every = QUICK if quick else table()
    try:
        found = tuple(case for case in every if re.search(pattern or "", case.id))
    except re.error as e:
        raise BadInput(f"--cases: {pattern!r:.60} is no regular expression ({e})") from None
    if not found:
        raise BadInput(
            f"--cases: no case matches {pattern!r:.60}; the first are {', '.join(c.id for c in every[:3])}"
        )
    return found
