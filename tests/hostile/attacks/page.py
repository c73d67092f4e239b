"""The page of the attacks by chapter: how many a quick run finds, how many a whole run finds of the rest, and how
often the clause to look at first is right."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from tabulate import tabulate

from hostile.attacks import grammar
from hostile.attacks.grammar import Attack
from hostile.attacks.judging import Found

ROOT = Path(__file__).parents[3]
FILE = ROOT / "reports" / "published" / "attacks.json"
PAGE = FILE.with_name("ATTACKS.md")

TEXT = """# Wrong caches at real sizes

{attacks} wrong caches, which [a grammar](../../tests/hostile/attacks/grammar.py) makes of right ones: each has
one thing wrong where a trigger is met. A trace beside each shows that it is wrong, and no judge has a part in
that. Each is judged as `kvconform run --quick` does, to the end; {first} were judged until a check failed. Those
that it misses are judged as `kvconform run` does, until a check fails. *By either* counts what one of the two
finds. It is no rate of whole runs alone: most traces of a quick run are judged in a whole one too, but not its
walks, which are shorter, nor the other forms of its explored traces. *Right clause first*: of those that the quick
run finds and judges to the end, how many have a clause of what is wrong at the top of the report.
What was not judged counts in no rate.

{judged} of {attacks} were judged: `--quick` finds {quick}, either {either}. The clause to look at first is right
for {right}. `python -m tools.attacks --write` in `tests/` makes [attacks.json](attacks.json) and this page; begun
again it goes on.
"""
HEAD = ("attacks", "judged", "by --quick", "by either", "right clause first")
PARTS: dict[str, Callable[[Attack], str]] = {
    "chapter": lambda attack: attack.chapter,
    "trigger": lambda attack: attack.trigger.sort,
    "effect": lambda attack: attack.effect.sort,
}


class Outcome(Struct, omit_defaults=True):
    """What is known of one attack."""

    quick: bool
    """Whether a quick run finds it."""
    whole: bool | None = None
    """Whether a whole run does; None where it was not asked for."""
    check: str = ""
    """The check that found it first."""
    operations: int = 0
    """Operations that were judged until then."""
    first: str = ""
    """The clause to look at first, by the run that found it."""
    right: bool | None = None
    """Whether that is a clause of what is wrong, by the quick run; None if that found nothing."""
    unseen: str = ""
    """The shortest trace of the last run in which it did something wrong that nobody saw, if no run finds it."""
    error: str = ""
    """What ended the last run before it could tell."""

    @property
    def found(self) -> bool:
        """Whether one of the two finds it."""
        return self.quick or bool(self.whole)


Rows = Mapping[str, Outcome]


def outcome(quick: Found, whole: Found | None) -> Outcome:
    """What a quick run says of an attack, and a whole one if the quick one missed it."""
    by = whole or quick
    return Outcome(
        quick.found,
        whole.found if whole else None,
        by.source,
        by.operations,
        by.first,
        quick.right if quick.found else None,
        "" if by.found else by.unseen,
        "" if by.found else by.error,
    )


def said() -> dict[str, Outcome]:
    """What the file says of each attack that there still is, in their order."""
    rows = msgspec.json.decode(FILE.read_bytes(), type=dict[str, Outcome]) if FILE.exists() else {}
    return {id_: rows[id_] for id_ in grammar.attacks() if id_ in rows}


def write(found: Rows) -> None:
    """Keep what was found, beside what was known of others; make the page of it."""
    rows = said() | dict(found)
    known = {i: rows[i] for i in grammar.attacks() if i in rows}
    lines = (f"{json.dumps(i)}: {msgspec.json.encode(row).decode()}" for i, row in known.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    PAGE.write_text(page(known), encoding="utf-8")


def page(rows: Rows) -> str:
    """The page of what is known."""
    _, *shares = _line(list(grammar.attacks()), rows)
    names = ("judged", "quick", "either", "right")
    first = sum(row.quick and row.right is None for row in rows.values())
    text = TEXT.format(attacks=len(grammar.attacks()), first=first, **dict(zip(names, shares, strict=True)))
    parts = [text, *(_part(name, rows) for name in PARTS), *_missed(rows)]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _part(name: str, rows: Rows) -> str:
    """The table by chapters, triggers or effects."""
    of: dict[str, list[str]] = {}
    for id_, attack in grammar.attacks().items():
        of.setdefault(PARTS[name](attack), []).append(id_)
    lines = [[each, *_line(of[each], rows)] for each in sorted(of)]
    table = tabulate(lines, [name, *HEAD], tablefmt="github", colalign=("left", *["right"] * len(HEAD)))
    return f"\n## By {name}\n\n{table}\n"


def _line(ids: Sequence[str], rows: Rows) -> list[str]:
    """How many attacks, how many judged, and the shares of these."""
    judged = [rows[i] for i in ids if i in rows]
    shares = (
        _share([r.quick for r in judged]),
        _share([r.found for r in judged]),
        _share([r.right for r in judged if r.right is not None]),
    )
    return [str(len(ids)), str(len(judged)), *shares]


def _share(of: Iterable[bool | None]) -> str:
    """How many of how many; nothing of none."""
    each = list(of)
    return f"{sum(map(bool, each))} of {len(each)} ({sum(map(bool, each)) / len(each):.0%})" if each else ""


def _missed(rows: Rows) -> Iterator[str]:
    """Those that a quick run misses, one by one."""
    sorts: dict[str, Callable[[Outcome], bool]] = {
        "Found by neither": lambda row: not row.found,
        "Found by a whole run alone": lambda row: row.found and not row.quick,
    }
    for title, suits in sorts.items():
        lines = [f"- {id_}: {_how(row)}" for id_, row in rows.items() if suits(row)]
        yield from [f"## {title}", "\n".join(lines)] if lines else []


def _how(row: Outcome) -> str:
    """What found it; or how it was missed."""
    if row.found:
        return f"by `{row.check}`"
    seen = f"wrong and unseen in `{row.unseen}`" if row.unseen else "never wrong in what was judged"
    return row.error or (seen if row.whole is False else f"{seen}; no whole run was asked for")


def both(
    ids: Sequence[str], ask: Callable[[Sequence[str], str], list[Found]], keep: Callable[[Rows], None] = write
) -> tuple[list[Found], list[Found]]:
    """Judge attacks by quick runs, and those that these miss by whole ones; keep what is found after each. Give
    what the quick runs found, and what the last run of each did. `ask`: judges ids in a mode."""
    quick = {found.id: found for found in ask(ids, "quick")}
    keep({i: outcome(found, None) for i, found in quick.items()})
    whole = {found.id: found for found in ask([i for i, found in quick.items() if not found.found], "whole")}
    keep({i: outcome(found, whole.get(i)) for i, found in quick.items()})
    return list(quick.values()), list((quick | whole).values())
