"""The lines of a log of steps, read one after another: a log may be longer than the memory.

The first line describes the engine, each further one is an event; `spec/kvspec/steps/step.md` says what they hold.
What a line says is checked before anything is made of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from kvspec.errors import BadInput
from kvspec.outside import read_json
from kvspec.steps.view import View, view

VERSION = 1
MOST_PAGES, MOST_ROWS, MOST_GROUPS = 1 << 24, 1 << 24, 64
"""Pages of a pool, positions of a page, and groups."""
MOST_SLOTS = 1 << 26
"""Rows that all pools may have room for."""
LONGEST = 64 << 20
"""Bytes of a line."""
LARGEST_NUMBER = 1 << 31

Event = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Layers that see the same: `block` rows lie in a page of theirs, which `pool` has."""

    block: int
    view: View
    pool: int


@dataclass(frozen=True)
class Header:
    """The engine: its groups, the pages of each pool, and the pages that no request gets in any pool. `rows` of a
    page are as many as the group that puts most into a page. A page has one state."""

    engine: str
    groups: tuple[Group, ...]
    pages: tuple[int, ...]
    reserved: frozenset[int]

    @cached_property
    def pools(self) -> int:
        """How many pools there are."""
        return len(self.pages)

    @cached_property
    def rows(self) -> int:
        """The rows of a page."""
        return max(1 if group.view.kind == "state" else group.block for group in self.groups)


@dataclass(frozen=True)
class Line:
    """One event: the number of its line in the file, its first key, and how many steps there were up to it."""

    number: int
    verb: str
    event: Event
    step: int = 0


def is_steps(path: Path) -> bool:
    """Tell whether a file begins as a log of steps does."""
    try:
        with path.open("rb") as file:
            return b'"kvsteps"' in file.readline(LONGEST)[:200]
    except OSError:
        return False


@contextmanager
def opened(path: Path) -> Iterator[tuple[Header, Iterator[Line]]]:
    """Read the header, and give it and the events that follow it. Raises BadInput, also while events are taken."""
    try:
        file = path.open("rb")
    except OSError as e:
        raise BadInput(f"{path}: cannot be read: {e.strerror or e}") from None
    with file:
        lines = _objects(path, file)
        first = next(lines, None)
        if first is None:
            raise BadInput(f"{path}: an empty log")
        try:
            made = header(first[1])
        except BadInput as e:
            raise BadInput(f"{path}, line 1: {e}") from None
        yield made, _events(path, lines)


def _objects(path: Path, file: IO[bytes]) -> Iterator[tuple[int, Event]]:
    number = 0
    while text := file.readline(LONGEST + 1):
        number += 1
        if len(text) > LONGEST:
            raise BadInput(f"{path}, line {number}: a line has at most {LONGEST} bytes; is this another file?")
        yield number, _object(text, f"{path}, line {number}")


def _object(text: bytes, where: str) -> Event:
    shown = repr(text[:60].decode("utf-8", "replace"))
    try:
        found = read_json(text)
    except BadInput as e:
        raise BadInput(f"{where}: {e}") from None
    except (ValueError, RecursionError):
        cut = "" if text.endswith(b"\n") else "; it ends in the middle: remove this line"
        raise BadInput(f"{where}: not JSON: {shown}{cut}") from None
    if not isinstance(found, dict):
        raise BadInput(f"{where}: expected an object, found {shown}")
    return found


def _events(path: Path, lines: Iterator[tuple[int, Event]]) -> Iterator[Line]:
    step = 0
    for number, event in lines:
        try:
            verb = verb_of(event)
            step += verb == "step"
            yield Line(number, verb, event, step)
        except BadInput as e:
            raise BadInput(f"{path}, line {number}: {e}") from None


def verb_of(event: Event) -> str:
    """Give what an event is: its first key. Raises BadInput for a key that this event does not have."""
    verb = next(iter(event), "")
    if verb not in KEYS:
        raise BadInput(f"an event begins with {', '.join(KEYS)}; this one begins with {verb!r:.40}")
    if strange := sorted(event.keys() - KEYS[verb] - {verb}):
        raise BadInput(f"{verb} has no {strange[0]!r:.40}")
    return verb


KEYS: dict[str, frozenset[str]] = {
    "add": frozenset({"tokens", "salt", "adapter", "media"}),
    **dict.fromkeys(("step", "sampled", "finish", "free", "reset", "left"), frozenset[str]()),
    "fork": frozenset({"as"}),
    "swap": frozenset({"tables"}),
    **dict.fromkeys(("copy", "zero", "offload", "load"), frozenset({"pool"})),
}
"""The events there are, and what each may hold beside."""


def header(first: Event) -> Header:
    """Read a header. Raises BadInput."""
    if first.get("kvsteps") != VERSION or type(first["kvsteps"]) is not int:
        raise BadInput(
            f'a log of steps begins with "kvsteps": {VERSION}; this one has {first.get("kvsteps")!r:.40}'
        )
    known = {"kvsteps", "engine", "pages", "groups", "reserved"}
    if strange := sorted(first.keys() - known):
        raise BadInput(f"the header has no {strange[0]!r:.40}; it has {', '.join(sorted(known))}")
    groups = first.get("groups")
    if not isinstance(groups, list) or not 1 <= len(groups) <= MOST_GROUPS:
        raise BadInput(f"groups is a list of 1 to {MOST_GROUPS} groups")
    read = tuple(map(_group, groups))
    if {group.pool for group in read} != set(range(len({group.pool for group in read}))):
        raise BadInput("pools are numbered from 0 on")
    pages = _pages(first.get("pages"), len({group.pool for group in read}))
    reserved = frozenset(numbers(first.get("reserved", []), "reserved", min(pages) - 1))
    made = Header(str(first.get("engine", ""))[:100], read, pages, reserved)
    if sum(pages) * made.rows > MOST_SLOTS:
        raise BadInput(f"pools, pages and rows of a page make more than {MOST_SLOTS} rows")
    return made


def _pages(given: Any, pools: int) -> tuple[int, ...]:
    """Read how many pages each pool has: one number for all, or a list."""
    each = given if isinstance(given, list) else [given] * pools
    if len(each) != pools:
        raise BadInput(f"pages is a number, or a list of {pools}: one for each pool")
    return tuple(number(pages, "pages", 1, MOST_PAGES) for pages in each)


def _group(given: Any) -> Group:
    if not isinstance(given, dict) or given.keys() - {"block", "view", "pool"}:
        raise BadInput(
            f'a group is {{"block": 16, "view": "full"}}, and has a pool if it has its own; not {given!r:.60}'
        )
    block = number(given.get("block"), "block", 1, MOST_ROWS)
    return Group(block, view(given.get("view")), number(given.get("pool", 0), "pool", 0, MOST_GROUPS - 1))


def number(given: Any, what: str, least: int, most: int) -> int:
    """Give a whole number. Raises BadInput if it is none, or out of its bounds."""
    if type(given) is not int or not least <= given <= most:
        raise BadInput(f"{what} is a whole number from {least} to {most}, not {given!r:.40}")
    return given


def numbers(given: Any, what: str, most: int, least: int = 0) -> list[int]:
    """Give a list of whole numbers from `least` to `most`. Raises BadInput."""
    if not isinstance(given, list):
        raise BadInput(f"{what} is a list of whole numbers, not {given!r:.40}")
    for each in given:
        if type(each) is not int or not least <= each <= most:
            raise BadInput(f"{what} has whole numbers from {least} to {most}, not {each!r:.40}")
    return given


def text(given: Any, what: str) -> str:
    """Give a text of at most 200 characters. Raises BadInput."""
    if not isinstance(given, str) or len(given) > 200:
        raise BadInput(f"{what} is a text of at most 200 characters, not {given!r:.40}")
    return given
