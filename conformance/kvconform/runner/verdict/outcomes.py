"""Outcomes of known deviations: messages as reports print them. One that any failure of a clause has is refused."""

from __future__ import annotations

import re
from typing import Any

from kvspec import notation
from kvspec.errors import BadInput
from kvspec.operations.table import Operation
from kvspec.rows.serials import ILLEGIBLE, serial

RESULT = "result"
"""The observable that differs where an operation was taken, refused, or ended otherwise."""

SAMPLES = (
    ("query 0 sees a; expected b", "query 3 sees b c e; expected c d e"),
    ("query 0 sees nothing; expected a", "query 2 sees nothing; expected c d"),
    ("query 0 sees a b; expected b", "query 2 sees a b c; expected c"),
    ("sequence 1, head 0: query 0 sees a; expected b", "sequence 0, head 3: query 2 sees c d; expected d e"),
    ("offset: expected 0, found 1", "offset: expected 7, found 5"),
    ("can: expected False, found True", "can: expected True, found False"),
    ("view: expected a b, found b", "view: expected c d e, found c e"),
    ("lengths: expected [1, 2], found [1, 1]", "lengths: expected [3], found [4]"),
    ("history a b should hold c once", "history d should hold e f and nothing else"),
    ("mask (1, 1, 2, 3) does not fit 2 rows", "mask (1, 1, 1, 1) does not fit 4 rows"),
    (
        "state.0.k: slot 0, head 0 holds row a; expected row b",
        "state.k: slot 3, head 1 holds row d; expected row e",
    ),
    (
        "output at [0, 0, 0, 0]: expected 1, found 2 is off by 1",
        "output at [1, 0, 2, 3]: expected 4, found 0 is off",
    ),
    ("expected refused RING-10, found ok", "expected refused CACHE-7, found ok"),
    ("expected ok, found refused CACHE-7", "expected ok, found refused"),
    ("expected ok, found error (TypeError: a (b.py:1))", "expected ok, found error (ValueError: c (d.py:2))"),
)
"""Two messages of each sort: a text that both have tells nothing of a failure."""

SAME_WORDS = re.compile(
    r"history: keys and values, heads or sequences do not hold the same rows|expected (ok|refused)[^,]*, found \w+",
)
"""Messages that all failures of their sort have, whatever the trace: only a trace tells them apart."""

SUFFIX = re.compile(r" \((?:[^()]* from \d+ on)(?:, [^()]* from \d+ on)*\)$")
"""What a shortened trace with large numbers adds to its message."""

BEHIND = " (behind what is known: "
"""How a message goes on, where the trace deviates as is known before."""


def told(message: str) -> str:
    """The message of what differs, without what is added to it."""
    return SUFFIX.sub("", message.partition(BEHIND)[0])


def matches(shows: str, message: str) -> bool:
    """Whether a message is the one that was printed."""
    pattern = ".*".join(map(re.escape, told(shows).split("*")))
    return re.fullmatch(pattern, told(message), re.DOTALL) is not None


QUERY = re.compile(r"(?:sequence \d+, head \d+: )?query \d+ sees ([a-z0-9 .~?]+); expected ([a-z0-9 .~?]+?)(?:;|$)")
NUMBER = re.compile(r"([\w.]+): expected (-?\d+), found (-?\d+)(?:;|$)")


def difference(message: str) -> Any:
    """What the first difference of a message comes to, whatever rows and numbers are called.

    For a query that is the rows it sees too many or too few, counted from the expected ones. For a number it is
    how far off the number is. Otherwise it is the message itself.
    """
    text = told(message)
    if query := QUERY.match(text):
        seen, expected = (tuple(map(_place, words.split())) for words in query.groups())
        oldest, newest = min(expected, default=0), max(expected, default=0)
        extra = tuple(s - oldest for s in seen if seen.count(s) > expected.count(s))
        return "sees", extra, tuple(newest - s for s in expected if s not in seen)
    if number := NUMBER.match(text):
        return number[1], int(number[3]) - int(number[2])
    return text


def _place(row: str) -> int:
    """The serial of a row; a number below all for what is none, such as `nothing`."""
    return serial(row) if re.fullmatch(r"[a-z]\d*|[.~]", row) else ILLEGIBLE


def alike(listed: str, words: str, field: str) -> bool:
    """Whether a trace ends in the operation of a listed one, and does before it what that one does. Where only the
    result of the operation differs, it is the same operation, on any cache and with any number of rows."""
    trace, known = notation.from_sentence(words), notation.from_sentence(listed)
    *before, last = known.ops
    *done, ended = trace.ops
    if field == RESULT:
        return trace.kind == known.kind and _arguments(ended, True) == _arguments(last, True)
    left = iter(done)
    return trace.kind == known.kind and _does(ended, last) and all(any(_does(op, b) for op in left) for b in before)


def _does(op: Operation, listed: Operation) -> bool:
    """Whether an operation does what a listed one does, perhaps with rows of another geometry or content."""
    return _arguments(listed).items() <= _arguments(op).items()


def _arguments(op: Operation, numbers: bool = False) -> dict[str, Any]:
    """The arguments of an operation without its cache and its number of rows; other numbers are 0, unless these are
    wanted."""
    kept = {name: value for name, value in op.items() if name not in ("cache", "n")}
    return {name: value if numbers or not isinstance(value, int) else 0 for name, value in kept.items()}


def demand_tight(shows: str, trace: str, where: str) -> None:
    """Refuse a message that other failures have too. Raises BadInput that says what to write instead."""
    if shows and any(_within(shows, one) and _within(shows, other) for one, other in SAMPLES):
        raise BadInput(
            f"{where}: shows {shows!r:.60} fits any failure of its sort, and would hide others behind it; write "
            "a model (the report proposes one), or the whole message and its trace as the report prints them"
        )
    if not shows:
        raise BadInput(f"{where}: give beside the trace what it shows, the message as the report prints it")
    if not trace and SAME_WORDS.fullmatch(shows):
        raise BadInput(f"{where}: shows {shows!r:.60} is the same whatever was done; give its trace too")


def _within(shows: str, message: str) -> bool:
    return re.search(".*".join(map(re.escape, shows.split("*"))), message, re.DOTALL) is not None
