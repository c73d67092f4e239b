"""The compact notation: an operation in a few words, as in worked examples, vectors, reports and messages.

append 3            append 2 fill=bits       B: append 1          open B window=4
mask causal & 1011  mask window=2            mask none            rewind 3
snapshot s          snapshot s 2             restore s 5          split s 2 p c
merge p c m         close s                  view   free   scribble   ask 3
speculate r A-B     A: draft r 2             commit r 1           mask round=r causal
attend 2 heads=4 through causal & window=3   gather 0,2 5         rotate 3 at=7 pairing=norm
run 1000 {append 1; rewind 0}
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from kvspec.errors import BadInput
from kvspec.geometry import SIZES, Config
from kvspec.operations.table import ARGUMENTS, OPERATIONS, RUN, Operation, argument, cache_of, unknown
from kvspec.outside import did_you_mean
from kvspec.trace import Trace, check_operation, from_parts

LARGEST_SAID = 1 << 16
"""Most elements of a mask given by its shape alone."""


def operation(text: str) -> Operation:
    """Read one operation. Raises BadInput."""
    if _RUN.match(text):
        return _run(text)
    words, op = text.split(), dict[str, Any]()
    if words and words[0].endswith(":"):
        op["cache"] = words.pop(0)[:-1]
    if not words or words[0] not in OPERATIONS:
        raise BadInput(f"{text!r}: {unknown(words[0] if words else '')}")
    op["op"] = words.pop(0)
    if op["op"] == "open" and words:
        op["cache"] = words.pop(0)
    if op["op"] == "mask":
        if words and words[0].startswith("round="):
            op["round"] = words.pop(0).removeprefix("round=")
        op["parts"] = _mask_parts(" ".join(words))
        words = []
    if "through" in words:
        at = words.index("through")
        op["through"], words = _mask_parts(" ".join(words[at + 1 :])), words[:at]
    _fill_arguments(op, words, text)
    check_operation(op, repr(text))
    return {"op": op.pop("op"), **op}


def operations(text: str) -> tuple[Operation, ...]:
    """Read operations separated by `;`. Raises BadInput."""
    return tuple(map(operation, separated(text)))


def separated(text: str) -> list[str]:
    """Part the texts of operations."""
    return [part for part in _SEPARATOR.split(text) if part.strip()]


_RUN = re.compile(r"\s*run\s+(-?\d+)\s*\{(.*)\}\s*$")
_SEPARATOR = re.compile(r";(?![^{]*\})")
"""Between two operations: a semicolon that is not within the braces of a run."""


def _run(text: str) -> Operation:
    """Read a run of operations."""
    found = _RUN.match(text)
    assert found is not None
    op = {"op": RUN.name, "times": int(found[1]), "ops": list(operations(found[2]))}
    check_operation(op, repr(text))
    return op


def _fill_arguments(op: Operation, words: list[str], text: str) -> None:
    arguments = ARGUMENTS[op["op"]]
    positional = list(arguments.values())
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            if not positional:
                raise BadInput(f"{text!r}: {word!r} is one word too many")
            name, value = positional.pop(0).name, word
        if name not in arguments:
            hint = did_you_mean(name, arguments) or f"; {op['op']} has {', '.join(arguments) or 'none'}"
            raise BadInput(f"{text!r}: unknown argument {name!r}{hint}")
        op[name] = _number(value, text) if arguments[name].holds == "number" else value


def _number(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadInput(f"{where!r}: {text!r} is not a whole number") from None


def _mask_parts(text: str) -> list[Any]:
    if text.strip() == "none":
        return []
    return [_mask_part(p.strip()) for p in text.split("&")]


def _mask_part(text: str) -> Any:
    if text == "causal":
        return "causal"
    if text.startswith("window="):
        return {"window": _number(text[len("window=") :], text)}
    if text.startswith("["):
        return {"array": _nested(text.strip("[]"), lambda q: [_score(x) for x in q.split()]), "dtype": "f32"}
    sized = re.fullmatch(r"(bool|f32)\[([\d, ]*)\]", text)
    if sized:
        return _sized(sized[1], tuple(_number(n, text) for n in sized[2].split(",") if n.strip()), text)
    if set(text) <= set("01/,+ ") and text:
        return {"array": _nested(text, lambda q: [c == "1" for c in q.strip()]), "dtype": "bool"}
    meant = did_you_mean(text.partition("=")[0], ("none", "causal", "window"), 1)
    raise BadInput(f"mask {text!r}: expected none, causal, window=N, 0s and 1s, or [scores]{meant}")


def _sized(dtype: str, shape: tuple[int, ...], where: str) -> Any:
    """Read an array given by its shape alone: it hides nothing, or has no elements."""
    if math.prod(shape) > LARGEST_SAID:
        raise BadInput(f"{where!r}: a mask given by its shape has at most {LARGEST_SAID} elements")
    if 0 in shape:
        return {"array": [], "dtype": dtype, "shape": list(shape)}
    return {"array": np.full(shape, dtype == "bool", bool if dtype == "bool" else float).tolist(), "dtype": dtype}


def _nested(text: str, query: Callable[[str], list[Any]]) -> list[Any]:
    """Read `[batch][head][query]`: + separates batch rows, commas heads, slashes queries."""
    return [[[query(q) for q in head.split("/")] for head in row.split(",")] for row in text.split("+")]


def _score(text: str) -> Any:
    return "-inf" if text == "-inf" else float(text)


def words(op: Operation) -> str:
    """Write one operation; `operation` reads it back."""
    if op["op"] == RUN.name:
        return f"run {op['times']} {{{'; '.join(map(words, op['ops']))}}}"
    prefix = f"{op['cache']}: " if cache_of(op) != "A" and op["op"] != "open" else ""
    out = [op["op"]] + ([cache_of(op)] if op["op"] == "open" else [])
    for a in OPERATIONS[op["op"]].arguments:
        value = argument(op, a.name)
        if a.name == "through":
            out += [] if list(value) == list(a.default) else ["through", mask_words(value)]
        elif a.holds == "mask":
            out += ([f"round={op['round']}"] if op.get("round") else []) + [mask_words(value)]
        elif a.name == "round":
            continue
        elif a.required:
            out.append(str(value))
        elif value != a.default:
            out.append(str(value) if op["op"] == "snapshot" else f"{a.name}={value}")
    return prefix + " ".join(out)


def mask_words(parts: list[Any]) -> str:
    """Write a logical mask of JSON parts; for an array without four axes (caches refuse it) the shape alone."""
    return " & ".join(_mask_words(p) for p in parts) or "none"


def _mask_words(part: Any) -> str:
    if part == "causal":
        return "causal"
    if "window" in part:
        return f"window={part['window']}"
    array = np.array(part["array"], dtype=object)
    if "shape" in part or array.ndim != 4:
        return f"{part['dtype']}[{','.join(map(str, part.get('shape', array.shape)))}]"
    if part["dtype"] == "bool":
        return _joined(array, "/", lambda q: "".join("1" if x else "0" for x in q))
    return "[" + _joined(array, " / ", lambda q: " ".join(map(_score_words, q))) + "]"


def _score_words(x: Any) -> str:
    """Write a score for `_score` to read back: six digits if that is exact, and no plus sign, as + separates batch
    rows."""
    short = x if x == "-inf" else f"{x:g}"
    return (short if float(short) == float(x) else repr(float(x))).replace("e+", "e")


def _joined(array: Any, between: str, query: Callable[[Any], str]) -> str:
    return "+".join(",".join(between.join(map(query, head)) for head in row) for row in array)


def sentence(trace: Trace) -> str:
    """Write the whole trace in a line: `ring window=3: append 3; append 1; rewind 2`."""
    fields = {k: v for k, v in trace.config.to_json().items() if v != getattr(Config(), k)}
    setting = "".join(f" {k}={v}" for k, v in fields.items())
    return f"{trace.kind}{setting}: {'; '.join(map(words, trace.ops))}"


def from_sentence(text: str) -> Trace:
    """Read what `sentence` wrote. Raises BadInput."""
    head, _, ops = text.partition(": ")
    kind, _, fields = head.partition(" ")
    return trace(kind, fields, ops)


def trace(kind: str, fields: str, ops: str) -> Trace:
    """Read a trace from its parts: `trace("ring", "window=3", "append 3; append 1")`. Raises BadInput."""
    config = dict(f.partition("=")[::2] for f in fields.split())
    typed = {k: _number(v, fields) if k in SIZES else v for k, v in config.items()}
    return from_parts(kind, typed, operations(ops))
