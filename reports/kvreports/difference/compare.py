"""Compares two records of one engine, clause by clause.

A clause is *held* if no difference was seen, *broken* if one was, known or not, and *unjudged* otherwise. Something
broke anew in three cases. A clause held and is broken. A known deviation has become an unknown one. A broken clause
is now broken in another way too.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from kvreports.clauses import order
from kvreports.difference.judged import UNCLAIMED, Judged, Judgement, differing
from kvspec.records.difference import GROUPS, Change, Difference, Group
from kvspec.records.run import BROKEN, HELD

MENDED = "XPASS"
"""A known deviation that shows nowhere any more: it fails a run, and is mended all the same."""

KNOWN = "XFAIL"


def compare(before: Judgement, now: Judgement, withdrawn: Mapping[str, str]) -> Difference:
    """Give what changed. `withdrawn` has the ids of clauses that are no more, each with what took its place."""
    changes = [c for c in _changes(before, now, withdrawn) if c is not None]
    changes.sort(key=lambda c: (GROUPS.index(c.group), order(c.clause)))
    both = before.clauses.keys() & now.clauses.keys()
    held = sum(_held(before.clauses[i]) and _held(now.clauses[i]) for i in both)
    return Difference(
        before=before.side,
        now=now.side,
        notes=list(_notes(before, now)),
        changes=changes,
        unchanged=held,
        exit_status=_status(changes, before, now),
    )


def _status(changes: list[Change], before: Judgement, now: Judgement) -> int:
    """Give 1 if something broke anew. Give 3 if the newer record is no answer: it is of a part of a run, or of
    nothing that the older one judged."""
    if any(c.group == "broke anew" for c in changes):
        return 1
    judged = [{i for i, j in side.clauses.items() if _held(j) or _broken(j)} for side in (before, now)]
    return 0 if now.complete and judged[0] & judged[1] else 3


def _notes(before: Judgement, now: Judgement) -> Iterator[str]:
    """What a reader must know before they believe the comparison."""
    if before.side.engine != now.side.engine:
        yield f"these are two engines: {before.side.engine} and {now.side.engine}"
    if before.side.spec != now.side.spec:
        yield f"judged by two versions of the spec: {before.side.spec} and {now.side.spec}"
    yield from differing(before.selection, now.selection)
    for side, name in ((before, "older"), (now, "newer")):
        if not side.complete:
            yield f"the {name} run did not finish, or its harness failed"


def _changes(before: Judgement, now: Judgement, withdrawn: Mapping[str, str]) -> Iterator[Change | None]:
    for id_ in dict.fromkeys((*before.clauses, *now.clauses)):
        old, new = before.clauses.get(id_), now.clauses.get(id_)
        if id_ in withdrawn and new is None and _judged(old):
            yield _change("no longer judged", id_, old, Judged("", f"withdrawn: {withdrawn[id_]}"))
        elif group := _group(old, new, before.chapters):
            yield _change(group, id_, old, new)


def _group(old: Judged | None, new: Judged | None, whole: Container[str]) -> Group | None:
    """The group of a clause; None where nothing is to be told. `whole`: the chapters of which the older record had
    every clause."""
    only = old if new is None else new if old is None else None
    if only is not None and not only.chapter:
        return "broke anew" if old is None else "mended"
    if old is None and new is not None and new.chapter in whole:
        return "new in the spec"
    if _judged(old) != _judged(new):
        return "no longer judged" if _judged(old) else "newly judged"
    if old is None or new is None or not _judged(new):
        return None
    return _of_judged(old, new)


def _of_judged(old: Judged, new: Judged) -> Group | None:
    if _held(old) and _held(new):
        return "seen less of" if old.verdict == "PASS" and new.verdict in HELD[1:] else None
    if _held(new):
        return "mended"
    unknown = old.verdict == KNOWN and new.verdict != KNOWN
    other = bool(old.ways and new.ways - old.ways)
    return "broke anew" if _held(old) or unknown or other else "still broken"


def _change(group: Group, id_: str, old: Judged | None, new: Judged | None) -> Change:
    shown = new if new is not None and (new.trace or new.why or not old) else Judged("", "")
    return Change(
        group=group,
        clause="" if id_.startswith(UNCLAIMED) else id_,
        before=old.verdict if old else "",
        now=new.verdict if new else "",
        trace=shown.trace,
        why=shown.why or ("not in the newer record" if new is None else ""),
        drawing=list(shown.drawing) if group == "broke anew" else [],
    )


def _held(judged: Judged) -> bool:
    return judged.verdict in HELD or judged.verdict == MENDED


def _broken(judged: Judged) -> bool:
    return judged.verdict in (*BROKEN, KNOWN) and judged.verdict != MENDED


def _judged(judged: Judged | None) -> bool:
    return judged is not None and (_held(judged) or _broken(judged))
