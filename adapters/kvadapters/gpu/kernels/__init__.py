"""The kernels as text: one common text in the subset shared by CUDA C and OpenCL C, and a prelude per dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

WORDS = {1: "u8", 2: "u16", 4: "u32", 16: "u128"}
"""Bytes a word of what moves rows may have, with its type; the kernels are called move1, move2, move4, move16."""

_EACH = {"move": 4, "place": 5, "step": 5, "scatter": 5, "page": 5}
"""The kernels that there is one of for each word, with their buffer arguments."""

COPIES = {
    **{f"copy{n}": (WORDS[n], WORDS[n], "") for n in (2, 4, 16)},
    **{f"cast1_{d}": ("u32", "u16", f"{d}_of") for d in ("f16", "bf16")},
    **{f"cast4_{d}": ("u128", "u64", f"{d}s_of") for d in ("f16", "bf16")},
}
"""The kernels that copy into a buffer: the word each reads, the word it writes, and the function between them."""

NUMBERS = {"f32": ("u32", "FLOAT(x)"), "f16": ("u16", "f16_in(x)"), "bf16": ("u16", "FLOAT((u32)(x) << 16)")}
"""The dtypes rows may have: the integers they are made of, and how such an x becomes a number."""

LIE = {
    "runs": (
        "i64 of_entry_rows, i64 start, i64 before, i64 then",
        "entry * of_entry_rows + kv_head * slots + (p - first < before ? start : then - before) + p - first",
    ),
    "pages": (
        "i64 of_page_rows, i64 tables_at, i64 tables_stride",
        "(i64)tables[tables_at + entry * tables_stride + (u32)p / (u32)slots] * of_page_rows + kv_head * slots + "
        "(u32)p % (u32)slots",
    ),
}
"""The ways in which rows lie that are attended to: the arguments that say where, and the row of position p."""

ATTENDS = {f"attend_{lie}_{dtype}": (lie, dtype) for lie in LIE for dtype in NUMBERS}
"""The kernels that attend to rows."""

STORED = {"f32": "(x)", "f16": "(u16)f16_of(x)", "bf16": "(u16)bf16_of(x)"}
"""How an f32 number of these bits is rounded to what rows of a dtype are made of."""

ROPES = {f"rope_{dtype}": dtype for dtype in NUMBERS}
"""The kernels that turn rows."""

KERNELS = {"prepare": 1, "bound": 1, "clear": 1} | {f"{k}{n}": b for k, b in _EACH.items() for n in WORDS}
KERNELS |= {"number": 1, "poison": 1}
KERNELS |= dict.fromkeys(COPIES, 4) | dict.fromkeys(ATTENDS, 7) | {"attend_join": 2} | dict.fromkeys(ROPES, 5)
"""Every kernel, and how many of its arguments, the first ones, are buffers; all others are integers of 64 bits."""

LIMITS = {"stream_fill": 1, "stream_read": 2, "stream_write": 1, "stream_copy": 2}
"""The kernels that measure the limits of a device, a text of their own, and how many arguments are buffers."""


@cache
def source(dialect: Literal["cl", "cuda"]) -> str:
    """The whole program text in one dialect, ready to be compiled; it includes nothing."""
    plain = (f"prelude_{dialect}.h", "prepare.inc", "lengths.inc", "tables.inc", "casts.inc", "strict.inc")
    return "".join(map(_text, plain)) + "".join(_several())


def _several() -> Iterator[str]:
    """The kernels that there are several of."""
    yield from map(_each, _EACH)
    yield from map(_copy, COPIES)
    yield from map(_attend, ATTENDS)
    yield from map(_rope, ROPES)


def limits(dialect: Literal["cl", "cuda"]) -> str:
    """The text of the kernels that measure the limits of a device; only a profile has it compiled."""
    return _text(f"prelude_{dialect}.h") + _text("limits.inc")


def _each(name: str) -> str:
    """A kernel once for each word, called move1 and so on."""
    macro = name.upper()
    text, undo = _text(f"{name}.inc"), f"#undef WORD\n#undef {macro}\n"
    return "".join(f"#define WORD {t}\n#define {macro} {name}{n}\n{text}{undo}" for n, t in WORDS.items())


def _copy(name: str) -> str:
    """A kernel that copies into a buffer."""
    read, written, function = COPIES[name]
    return _with({"FROM": read, "TO": written, "CONVERT(x)": f"{function}(x)", "COPY": name}, "copy.inc")


def _attend(name: str) -> str:
    """A kernel that attends to rows of a dtype that lie in a certain way."""
    lie, dtype = ATTENDS[name]
    (places, row), (element, number) = LIE[lie], NUMBERS[dtype]
    defined = {"ATTEND": name, "ELEMENT": element, "NUMBER(x)": number, "PLACES": places, "ROW(p)": row}
    return _with(defined, "attend.inc")


def _rope(name: str) -> str:
    """A kernel that turns rows of a dtype."""
    element, number = NUMBERS[ROPES[name]]
    defined = {"ROPE": name, "ELEMENT": element, "NUMBER(x)": number, "STORED(x)": STORED[ROPES[name]]}
    return _with(defined, "rope.inc")


def _with(defined: Mapping[str, str], name: str) -> str:
    """A text, with macros that are there for it alone."""
    defines = "".join(f"#define {macro} {means}\n" for macro, means in defined.items())
    return defines + _text(name) + "".join(f"#undef {macro.partition('(')[0]}\n" for macro in defined)


def _text(name: str) -> str:
    return files(__name__).joinpath(name).read_text()
