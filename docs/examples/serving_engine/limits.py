"""What an engine and a request may ask for: all is checked before anything is done."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from serving_engine.blocks import Group, Int8Rows, Rows
from serving_engine.sequence import Request, Settings

FORMS: Mapping[str, type[Rows]] = {"f32": Rows, "int8": Int8Rows}
"""The forms in which rows are stored."""
LARGEST = 1 << 16
MOST_DRAFTS = 64


def check_settings(settings: Settings) -> None:
    """Raise ValueError for settings that no engine has."""
    for name in ("block_size", "blocks", "chunk", "budget", "sequences"):
        _between(name, getattr(settings, name), 1, LARGEST)
    _between("block_size times blocks", settings.block_size * settings.blocks, 1, LARGEST)
    _between("drafts", settings.drafts, 0, MOST_DRAFTS)
    _between("host_blocks", settings.host_blocks, 0, LARGEST)
    if settings.ahead and settings.drafts:
        raise ValueError("drafts follow the last token, which a step that is decided ahead does not know")
    if settings.rows not in FORMS:
        raise ValueError(f"rows is {settings.rows!r}; it is one of {', '.join(FORMS)}")


def check_request(request: Request, settings: Settings, vocabulary: int, groups: Sequence[Group]) -> None:
    """Raise ValueError for a request that can never be served."""
    rows = settings.blocks * settings.block_size
    _between("the number of tokens", len(request.prompt), 1, rows)
    _between("the number of new tokens", request.new, 1, rows)
    _between("the number of samples", request.samples, 1, min(settings.sequences, vocabulary))
    if request.logprobs is not None:
        _between("logprobs", request.logprobs, 1, vocabulary)
    for token in (*request.prompt, *request.bias, *([] if request.stop is None else [request.stop])):
        _between("a token's id", token, 0, vocabulary - 1)
    if (needed := _blocks(request, settings, groups)) > settings.blocks:
        raise ValueError(f"the request needs {needed} blocks, and there are {settings.blocks}; make it shorter")


def check_adapter(name: str, there: Collection[str]) -> None:
    """Raise ValueError for an adapter that was not loaded."""
    if name and name not in there:
        raise ValueError(f"no adapter {name!r}; there are {', '.join(there) or 'none'}")


def check_vectors(request: Request, shape: tuple[int, ...]) -> None:
    """Raise ValueError for vectors that stand behind the prompt, or have another shape than an embedding."""
    for place, vector in request.vectors.items():
        _between("the place of a vector", place, 0, len(request.prompt) - 1)
        if vector.shape != shape or vector.dtype != np.float32:
            raise ValueError(f"a vector is {vector.dtype} {list(vector.shape)}; it must be float32 {list(shape)}")


def _blocks(request: Request, settings: Settings, groups: Sequence[Group]) -> int:
    """Count the blocks that a sample of a request may need while it is alone: those of all its rows, or of what a
    window and a step's tokens touch."""
    rows, step = len(request.prompt) + request.new, max(settings.chunk, settings.drafts + 1)
    held = [rows if group.window is None else min(rows, group.window + step) for group in groups]
    extra = [0 if group.window is None else 1 for group in groups]
    return sum(-(-n // settings.block_size) + more for n, more in zip(held, extra, strict=True))


def _between(name: str, given: int, least: int, most: int) -> None:
    if not least <= given <= most:
        raise ValueError(f"{name} is {given}; it is from {least} to {most}")
