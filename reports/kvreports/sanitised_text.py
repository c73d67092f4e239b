"""Text from a record may come from anywhere: what a terminal or a parser would obey is replaced here, once.

HTML is escaped by the template engine, not here; this removes what escaping cannot make harmless (escape
sequences for terminals, text that runs backwards, halves of surrogate pairs that no file can hold).
"""

from __future__ import annotations

import re
from typing import Any, cast

from kvspec.records.run import Record

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


class Html(str):
    """Text that is HTML already; the template engine asks for `__html__` and leaves it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def plain(text: str) -> str:
    """The text with every character that is obeyed rather than shown replaced; line ends and tabs stay."""
    return _OBEYED.sub("\ufffd", text) if _OBEYED.search(text) else text


def cleaned(value: Any) -> Any:
    """JSON in which every text is plain."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(str(k)): cleaned(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(v) for v in value]
    return value


def cleaned_record(record: Record) -> Record:
    """A copy in which every text is plain, but for drawings and traces: they are long, and cleaned as drawn."""
    parts: Any = {k: v if k in ("failures", "clauses") else cleaned(v) for k, v in record.items()}
    for name in ("failures", "clauses"):
        parts[name] = [_but_traces(part) for part in parts[name]]
    return cast(Record, parts)


def _but_traces(part: Any) -> Any:
    return {k: v if k in ("steps", "trace") else cleaned(v) for k, v in part.items()}


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters; what was cut is counted."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def line(text: str) -> str:
    """The text in one line."""
    return " ".join(text.split())
