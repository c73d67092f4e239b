"""Replaces characters that a terminal or a parser would obey: the text of a record may come from anywhere.

The template engine escapes HTML, not this module. This removes what escaping cannot make harmless: escape
sequences for terminals, text that runs backwards, and halves of surrogate pairs, which no file can hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import Any, TypeVar, cast

from msgspec import Struct

from kvspec.records.run import Record

T = TypeVar("T")

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


class Html(str):
    """Text that is HTML already; the template engine asks for `__html__` and leaves it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def plain(text: str) -> str:
    """The text with control characters replaced; line ends and tabs stay."""
    return _OBEYED.sub("\ufffd", text) if _OBEYED.search(text) else text


def mapped(value: T, text: Callable[[str], str], but: Container[str] = ()) -> T:
    """A copy of a record, or of any JSON, with a function applied to every text. Leaves alone the fields named in
    `but`."""
    made: Any = value
    if isinstance(value, str):
        made = text(value)
    elif isinstance(value, Struct):
        fields = ((n, getattr(value, n)) for n in value.__struct_fields__)
        made = type(value)(**{n: v if n in but else mapped(v, text, but) for n, v in fields})
    elif isinstance(value, dict):
        made = {text(str(k)): mapped(v, text, but) for k, v in value.items()}
    elif isinstance(value, list | tuple):
        made = [mapped(v, text, but) for v in value]
    return cast(T, made)


def cleaned(value: T) -> T:
    """A copy of a record, or of any JSON, in which every text is plain."""
    return mapped(value, plain)


def cleaned_record(record: Record) -> Record:
    """A copy in which every text is plain. Steps and traces stay as they are: drawing cleans what it draws."""
    return mapped(record, plain, ("steps", "trace"))


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, then a note of how many were cut."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def line(text: str) -> str:
    """The text in one line."""
    return " ".join(text.split())
