"""The kernels as text: one common text in the subset shared by CUDA C and OpenCL C, and a prelude per dialect."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

WORDS = {1: "u8", 2: "u16", 4: "u32", 16: "u128"}
"""Bytes a word of the move kernels may have, with its type; the kernels are called move1, move2, move4, move16."""

KERNELS = ("prepare", *(f"move{n}" for n in WORDS))
"""The names of all kernels."""


@cache
def source(dialect: Literal["cl", "cuda"]) -> str:
    """The whole program text in one dialect, ready to be compiled; it includes nothing."""
    move = _text("move.inc")
    moves = (f"#define WORD {t}\n#define MOVE move{n}\n{move}#undef WORD\n#undef MOVE\n" for n, t in WORDS.items())
    return _text(f"prelude_{dialect}.h") + _text("prepare.inc") + "".join(moves)


def _text(name: str) -> str:
    return files(__name__).joinpath(name).read_text()
