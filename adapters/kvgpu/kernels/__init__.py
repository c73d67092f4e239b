"""The kernels as text: one common text in the subset shared by CUDA C and OpenCL C, and a prelude per dialect.

The folders `cpu` and `gpu` have texts that do the same as some of these in an order of work for such a device. The
folder `fast` has further kernels: attention by rows or by tensor cores, and the kernel of captured steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

WORDS = {1: "u8", 2: "u16", 4: "u32", 16: "u128"}
"""The widths in bytes of a word that moves rows, with its type; the kernels are called move1, move2, move4,
move16."""

_EACH = {"move": 4, "place": 5, "step": 5, "scatter": 5, "page": 5, "layer": 5}
"""The kernels that exist once for each word, with their buffer arguments."""

COPIES = {
    **{f"copy{n}": (WORDS[n], WORDS[n], "") for n in WORDS},
    **{f"cast1_{d}": ("u32", "u16", f"{d}_of") for d in ("f16", "bf16")},
    **{f"cast4_{d}": ("u128", "u64", f"{d}s_of") for d in ("f16", "bf16")},
}
"""The kernels that copy into a buffer: the word each reads, the word it writes, and the function between them."""

NUMBERS = {"f32": ("u32", "FLOAT(x)"), "f16": ("u16", "f16_in(x)"), "bf16": ("u16", "FLOAT((u32)(x) << 16)")}
"""The dtypes rows may have: the integers they are made of, and how such an x becomes a number."""

PLACES = {
    "runs": "i64 of_entry_rows, i64 start, i64 before, i64 then",
    "pages": "i64 of_page_rows, i64 tables_at, i64 tables_stride",
}
"""The ways in which rows lie that are attended to, with the arguments that say where."""

ROWS = {
    "row of runs": (
        "entry * of_entry_rows + kv_head * slots + (p - first < before ? start : then - before) + p - first"
    ),
    "row of pages": (
        "(i64)tables[tables_at + entry * tables_stride + (u32)p / (u32)slots] * of_page_rows + kv_head * slots + "
        "(u32)p % (u32)slots"
    ),
}
"""For each way, the text that gives the row of position p. It is too short to be a file."""

ATTENDS = {f"attend_{lie}_{dtype}": (lie, dtype) for lie in PLACES for dtype in NUMBERS}
"""The kernels that attend to rows."""

SCORES = {f"scores_{lie}_{dtype}": (lie, dtype) for lie in PLACES for dtype in NUMBERS}
"""The kernels that make scores by a scale or a softcap."""

STORED = {"f32": "(x)", "f16": "(u16)f16_of(x)", "bf16": "(u16)bf16_of(x)"}
"""How the bits of an f32 number are rounded to the integers of a dtype's rows."""

ROPES = {f"rope_{dtype}": dtype for dtype in NUMBERS}
"""The kernels that turn rows."""

FOLDS = {f"fold_{dtype}": dtype for dtype in NUMBERS}
"""The kernels that fold rows into states."""

KERNELS = dict.fromkeys(("prepare", "guards", "bound", "clear"), 1)
KERNELS |= {f"{k}{n}": b for k, b in _EACH.items() for n in WORDS}
KERNELS |= {"number": 1, "poison": 1, "encode": 6, "decode": 6}
KERNELS |= (
    dict.fromkeys(COPIES, 4)
    | dict.fromkeys(ATTENDS, 7)
    | {"attend_join": 2, "attend_sinks": 2, "attend_part": 2, "attend_hides": 1}
    | dict.fromkeys(ROPES, 5)
)
KERNELS |= dict.fromkeys(SCORES, 5) | dict.fromkeys(FOLDS, 4)
"""Every kernel, and how many of its arguments, the first ones, are buffers; all others are integers of 64 bits."""

LIMITS = {"stream_fill": 1, "stream_read": 2, "stream_write": 1, "stream_copy": 2}
LIMITS |= {"stream_write_past": 1, "stream_copy_past": 2}
"""The kernels that measure the limits of a device, a text of their own, and how many arguments are buffers."""


SEVERAL = {f"{kind}{n}": f"{kind}.inc" for kind in _EACH for n in WORDS}
SEVERAL |= (
    dict.fromkeys(COPIES, "copy.inc") | dict.fromkeys(ATTENDS, "attend.inc") | dict.fromkeys(ROPES, "rope.inc")
)
SEVERAL |= dict.fromkeys(SCORES, "scores.inc") | dict.fromkeys(FOLDS, "fold.inc")
"""The kernels that exist in several forms, with the text that each is made from."""

PAST = {f"{name}16_past": f"{name}16" for name in ("copy", "move", "place", "scatter", "page", "layer")}
"""The kernels that write past the caches of a CPU, each with the plain one that writes the same bytes. A plain
store first reads the cache line that it changes, which makes large copies slow."""

PUT = "PUT(to, word)"
"""The macro by which the kernels that move rows store a word."""

PLAIN = (
    "prepare.inc",
    "lengths.inc",
    "tables.inc",
    "casts.inc",
    "strict.inc",
    "parts.inc",
    "capped.inc",
    "forms.inc",
)
"""The texts that stand in the program once."""

Device = Literal["any", "cpu", "gpu"]
"""What a program is for. The folder of a kind of device has the texts that suit it."""

BEFORE: Mapping[Device, Sequence[str]] = {"gpu": ["gpu/flat.inc"], "cpu": ["cpu/form_rows.inc"]}
BESIDE: Mapping[Device, Sequence[str]] = {"cpu": ["cpu/casts.inc", "cpu/strict.inc"]}
"""The texts that a program has in addition, before and behind the `PLAIN` ones."""

INSTEAD: Mapping[Device, Sequence[str]] = {
    "any": [],
    "cpu": ["attend.inc", "prepare.inc"],
    "gpu": ["copy.inc", "move.inc", "page.inc", "place.inc", "prepare.inc", "scatter.inc"],
}
"""The texts of the common kernels that a folder replaces by texts of the same names."""


def text(name: str) -> str:
    """The text of a file of this folder, or one of `ROWS`."""
    return ROWS[name] if name in ROWS else files(__name__).joinpath(name).read_text()


Read = Callable[[str], str]
"""Gives the text of a name: `text`, or a function that changes some texts."""


@cache
def source(dialect: Literal["cl", "cuda"], device: Device = "any") -> str:
    """The whole program text in one dialect, ready to be compiled; it includes nothing. The texts for a kind of
    device do the same in an order of work that suits it."""

    def read(name: str) -> str:
        return text(f"{device}/{name}" if name in INSTEAD[device] else name)

    names = f"prelude_{dialect}.h", *BEFORE.get(device, ()), *PLAIN, *BESIDE.get(device, ())
    return "".join(map(read, names)) + several(read=read) + (several(PAST, read) if device == "cpu" else "")


def limits(dialect: Literal["cl", "cuda"]) -> str:
    """The text of the kernels that measure the limits of a device; only a profile has it compiled."""
    return text(f"prelude_{dialect}.h") + text("limits.inc")


def several(names: Iterable[str] = SEVERAL, read: Read = text) -> str:
    """The text of these kernels that exist in several forms."""
    return "".join(_with(_macros(name, read), read(SEVERAL[PAST.get(name, name)])) for name in names)


def _macros(name: str, read: Read) -> dict[str, str]:
    """What is defined for a kernel alone."""
    if name in PAST:
        plain = _macros(PAST[name], read) | {PUT: "PAST(to, word)"}
        return {macro: name if means == PAST[name] else means for macro, means in plain.items()}
    if name in COPIES:
        return _copy(name)
    if name in ATTENDS:
        return {"ATTEND": name, **_over(*ATTENDS[name], read)}
    if name in SCORES:
        return {"SCORE": name, **_over(*SCORES[name], read)}
    if name in FOLDS:
        return _fold(name)
    return _rope(name) if name in ROPES else _each(name)


def _each(name: str) -> dict[str, str]:
    """A kernel for one of the words, such as move1."""
    kind = name.rstrip("0123456789")
    return {"WORD": WORDS[int(name.removeprefix(kind))], kind.upper(): name, PUT: "*(to) = word"}


def _copy(name: str) -> dict[str, str]:
    """A kernel that copies into a buffer."""
    read, written, function = COPIES[name]
    return {"FROM": read, "TO": written, "CONVERT(x)": f"{function}(x)", "COPY": name, PUT: "*(to) = word"}


def _over(lie: str, dtype: str, read: Read) -> dict[str, str]:
    """The macros of a kernel that reads rows of a dtype, stored in a certain way."""
    element, number = NUMBERS[dtype]
    places = {"PLACES": PLACES[lie], "ROW(p)": read(f"row of {lie}")}
    return {"ELEMENT": element, "NUMBER(x)": number, "EIGHT(p)": f"{dtype}_eight(p)", **places}


def _rope(name: str) -> dict[str, str]:
    """A kernel that turns rows of a dtype."""
    element, number = NUMBERS[ROPES[name]]
    return {"ROPE": name, "ELEMENT": element, "NUMBER(x)": number, "STORED(x)": STORED[ROPES[name]]}


def _fold(name: str) -> dict[str, str]:
    """A kernel that folds rows of a dtype."""
    element, number = NUMBERS[FOLDS[name]]
    return {"FOLD": name, "ELEMENT": element, "NUMBER(x)": number}


def _with(defined: Mapping[str, str], text: str) -> str:
    """A text with macros that are defined for it alone."""
    return defines(defined) + text + undefines(defined)


def defines(macros: Mapping[str, str | int]) -> str:
    """The lines that define macros, such as WORD or NUMBER(x)."""
    return "".join(f"#define {macro} {means}\n" for macro, means in macros.items())


def undefines(macros: Iterable[str]) -> str:
    """The lines that end the definitions of macros."""
    return "".join(f"#undef {macro.partition('(')[0]}\n" for macro in macros)
