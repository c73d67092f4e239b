"""Pages of reports as tests read them, and records whose every text means harm."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from msgspec import convert, to_builtins

from kvspec.records.run import CAUSES, VERDICTS, Record
from support.samples.record_samples import (
    TEXTS,
    failing,
)

VOID = {"meta", "link", "input", "br", "path", "rect", "circle", "use"}
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`${{7*7}}{%x%}\u202e\x1b[2J\x00\ud800 -->"
)


class Page(HTMLParser):
    """Fails on tags that do not match; keeps what the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.pieces: dict[str, list[str]] = {}
        self.row = ""
        self.feed(text)
        self.close()
        assert self.open == []
        self.rows = {row: "".join(pieces) for row, pieces in self.pieces.items()}
        self.text = "".join(self.words)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        found = {k: v or "" for k, v in attrs}
        assert len(found) == len(attrs), (tag, attrs)
        self.tags.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.row = found.get("id", "")

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, {k: v or "" for k, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, (tag, self.getpos())
        if tag == "tr":
            self.row = ""

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.words.append(data)
            self.pieces.setdefault(self.row, []).append(data)

    def having(self, name: str) -> list[str]:
        return [a[name] for _, a in self.tags if name in a]

    def named(self, tag: str) -> list[dict[str, str]]:
        return [a for t, a in self.tags if t == tag]


def hostile(value: Any) -> Any:
    """The record with every free text replaced."""
    if isinstance(value, Record):
        return convert(hostile(to_builtins(value)), Record)
    if isinstance(value, str):
        return value if value in (*VERDICTS, *CAUSES, *TEXTS) else HOSTILE
    if isinstance(value, dict):
        return {(k if k in KEYS else HOSTILE): hostile(v) for k, v in value.items()}
    return [hostile(v) for v in value] if isinstance(value, list) else value


def keys(value: Any) -> set[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (set(value) if isinstance(value, dict) else set()).union(*(keys(v) for v in inner))


KEYS = keys(to_builtins(failing())) - {"example growing", "cover ring", "explore ring", "numpy", "append append"}
