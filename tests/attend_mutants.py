"""The kernels of strict attention with one fault each, many in one text, each in a namespace of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kvadapters.gpu import kernels

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
ARITHMETIC = {" + ": " - ", " - ": " + ", " * ": " + ", " / ": " * ", " % ": " / ", " += ": " -= "}
SWAPPED = COMPARISONS | ARITHMETIC
"""Operators, each with what it becomes."""

TOKEN = re.compile(
    r"[<>=!]=|(?<= )[<>](?= )|&&|\|\|| [-+*/%] | \+= |(?<![\w.])\d+(?=u?\b)(?![\w.]*\.)|\d+\.\d+(?:e-?\d+)?(?=f)"
)

AXIS = re.compile(r"\b(ITEM|ITEMS|GROUP|GROUPS)\($")
"""What an axis stands behind: 3 would be the same as 2."""

ORDERS = {
    "strict.inc": [
        ("(x[i] + x[(i) + 16])", "(x[2 * (i)] + x[2 * (i) + 1])"),
        ("SUM8(x, (i) + 2)", "SUM8(x, (i) + 1)"),
        ("split = 0; split < splits; ++split", "split = splits - 1; split >= 0; --split"),
        ("l = FMA(its, part[1], mine * l)", "l = its * part[1] + mine * l"),
        ("l = FMA(its, part[1], mine * l)", "l = FMA(mine, l, its * part[1])"),
        ("a = FMA(its, part[2 + j], mine * a)", "a = FMA(mine, a, its * part[2 + j])"),
        ("y = FMA(y, rest, 1.0f)", "y = y * rest + 1.0f"),
        ("a > b || a != a ? a : b", "a > b || b != b ? a : b"),
    ],
    "attend.inc": [
        ("d = 0; d < width_k; ++d", "d = width_k - 1; d >= 0; --d"),
        ("int i = 0; i < TILE; ++i", "int i = TILE - 1; i >= 0; --i"),
        ("q[d] * FLOAT((u32)scale)", "q[d]"),
        (
            "score = FMA(NUMBER(key[d]), q[d] * FLOAT((u32)scale), score)",
            "score += NUMBER(key[d]) * q[d] * FLOAT((u32)scale)",
        ),
        ("l = FMA(its, total(weights), mine * l)", "l = FMA(mine, l, its * total(weights))"),
        ("FMA(its, a, mine * part[2 + j])", "FMA(mine, part[2 + j], its * a)"),
        (
            "a = FMA(weights[i], NUMBER(value[rows[i] * width_v]), a)",
            "a += weights[i] * NUMBER(value[rows[i] * width_v])",
        ),
        ("if (scores[i] != UNSEEN) a =", "if (weights[i] > 0.0f) a ="),
        ("highest = largest(scores)", "highest = scores[0]"),
    ],
}
"""Orders and roundings that no single token changes."""


class Mutant(NamedTuple):
    """One fault: what was done, the texts it is in, and the way of lying that it shows in."""

    what: str
    texts: dict[str, str]
    lie: str


def _sources() -> dict[str, str]:
    texts = {name: kernels._text(name) for name in ("strict.inc", "attend.inc")}
    return texts | {lie: row for lie, (_, row) in kernels.LIE.items()}


def mutants() -> Iterator[Mutant]:
    """Every one there is."""
    texts = _sources()
    for name, text in texts.items():
        lie = name if name in kernels.LIE else "runs"
        for what, changed in (*_tokens(text), *_orders(text, ORDERS.get(name, []))):
            yield Mutant(f"{name}: {what}", texts | {name: changed}, lie)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Each token made another."""
    blank = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.DOTALL)
    for found in TOKEN.finditer(blank):
        start, end = found.span()
        line = text[:start].count("\n") + 1
        around = " ".join(text[max(0, start - 24) : end + 16].split())
        other = _axis(int(found[0])) if AXIS.search(text[:start]) else _other(found[0])
        yield f"line {line}, {found[0].strip()} in {around}", text[:start] + other + text[end:]


def _other(token: str) -> str:
    if token in SWAPPED:
        return SWAPPED[token]
    if "." in token:
        return repr(float(token) * 1.001 or 1.0)
    return str(int(token) + 1)


def _axis(axis: int) -> str:
    return str((axis + 1) % 3)


def _orders(text: str, swaps: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for was, now in swaps:
        assert text.count(was) == 1, f"{was!r} is no longer there"
        yield f"{was} became {now}", text.replace(was, now)


PROBES = """
KERNEL probe(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *to, i64 what, i64 count) {
  for (i64 i = GROUP(0) * ITEMS(1) + ITEM(1); i < count; i += GROUPS(0) * ITEMS(1))
    if (ITEM(0) == 0)
      to[i] = what == 0 ? quotient(a[i], b[i]) : what == 1 ? power(a[i]) : what == 2 ? f16_in((u32)i) :
              what == 3 ? larger(a[i], b[i]) : below(a[i], b[i]);
}
"""
"""A kernel that calls the functions of strict.inc one by one."""


def text(numbered: list[tuple[int, Mutant]]) -> str:
    """One program of all of them."""
    return kernels._text("prelude_cuda.h") + "".join(_namespace(number, mutant) for number, mutant in numbered)


def _namespace(number: int, mutant: Mutant) -> str:
    strict = mutant.texts["strict.inc"] + PROBES
    names = re.sub(r"KERNEL (\w+)\(", rf"KERNEL \1_{number}(", strict)
    places, _ = kernels.LIE[mutant.lie]
    defined = {
        "ATTEND": f"attend_{number}",
        "ELEMENT": "u16",
        "NUMBER(x)": "f16_in(x)",
        "PLACES": places,
        "ROW(p)": mutant.texts[mutant.lie],
    }
    macros = [*(m.partition("(")[0] for m in defined), *re.findall(r"#define (\w+)", strict)]
    defines = "".join(f"#define {macro} {means}\n" for macro, means in defined.items())
    undo = "".join(f"#undef {macro}\n" for macro in macros)
    called = "".join(f"using m{number}::{name}_{number};\n" for name in ("attend_join", "attend", "probe"))
    return f"namespace m{number} {{\n{names}{defines}{mutant.texts['attend.inc']}{undo}}}\n{called}"
