"""Tells what happened to a request in fewer or smaller events: chosen tokens as part of its prompt, steps as one.

That is another life, in which the same pages have the same rows. Whether it breaks a clause as the life that was
lived does is for the judge to say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from kvconform.steps.log_file import Line

Atom = tuple[Line, str]
"""An event of one request, with its name; what is of none has the name `""`."""

OPTIONAL = ("salt", "adapter", "media")
"""What a request may be without."""


def names(atoms: list[Atom]) -> list[str]:
    """Give the requests that events are of, in their order."""
    return [name for name in dict.fromkeys(name for _, name in atoms) if name]


def alone(atoms: list[Atom], name: str) -> list[Atom]:
    """Let a request compute what it found."""
    changed = dict[int, Any]()
    for at in _own(atoms, name):
        part = _part(atoms[at])
        if part is not None and part["start"] and "tables" in part:
            changed[at] = {"step": {name: {**part, "start": 0, "n": part["start"] + part["n"]}}}
    return _with(atoms, changed)


def at_once(atoms: list[Atom], name: str, late: bool) -> list[Atom]:
    """Put all that a request was given into its prompt, and all steps that follow each other into one: where the
    first of them was, or, `late`, the last."""
    while asked := _prompted(atoms, name):
        atoms = asked
    while fused := next(_fused(atoms, name, (late,)), None):
        atoms = fused
    return atoms


def retold(atoms: list[Atom]) -> Iterator[list[Atom]]:
    """Give what differs in one place: a request is asked for more at once, computed at once, or needs less."""
    for name in names(atoms):
        yield from filter(None, (_prompted(atoms, name),))
        yield from _fused(atoms, name, (False, True))
        yield from _less(atoms, name)


def _own(atoms: list[Atom], name: str) -> list[int]:
    return [at for at, (_, whose) in enumerate(atoms) if whose == name]


def _with(atoms: list[Atom], changed: dict[int, Any]) -> list[Atom]:
    """Put other events in the place of some; None leaves one out."""
    return [
        (replace(line, event=changed.get(at, line.event)), name)
        for at, (line, name) in enumerate(atoms)
        if changed.get(at, line.event) is not None
    ]


def _part(atom: Atom) -> dict[str, Any] | None:
    """Give what a step computes of a request; None for another event, and for what is not told as it must be."""
    line, name = atom
    part = line.event["step"][name] if line.verb == "step" else None
    if not isinstance(part, dict) or not all(type(part.get(key)) is int for key in ("start", "n")):
        return None
    tables = [part.get(key, []) for key in ("tables", "more")]
    return (
        part if all(isinstance(each, list) and all(isinstance(t, list) for t in each) for each in tables) else None
    )


def _asked(atoms: list[Atom], name: str) -> int | None:
    """Give where a request is added."""
    return next((at for at in _own(atoms, name) if atoms[at][0].verb == "add"), None)


def _prompted(atoms: list[Atom], name: str) -> list[Atom] | None:
    """Put the first tokens that were chosen for a request into its prompt; None if there are none. What was drafted
    for them is told no more."""
    chosen = next((at for at in _own(atoms, name) if atoms[at][0].verb == "sampled"), None)
    asked = _asked(atoms, name)
    if chosen is None or asked is None:
        return None
    event, given = atoms[asked][0].event, atoms[chosen][0].event["sampled"][name]
    told = {asked: {**event, "tokens": [*event["tokens"], *given]}, chosen: None}
    before = next((at for at in reversed(_own(atoms[:chosen], name)) if _part(atoms[at]) is not None), None)
    return _with(atoms, told | ({} if before is None else _undrafted(atoms[before], before, len(given))))


def _undrafted(atom: Atom, at: int, given: int) -> dict[int, Any]:
    """Tell a step without its drafts: the rows of those that were right are of the prompt."""
    part = _part(atom)
    if not part or not part.get("drafts"):
        return {}
    n = part["n"] - len(part["drafts"]) + given - 1
    return {at: {"step": {atom[1]: {key: part[key] for key in part if key != "drafts"} | {"n": n}}}}


def _fused(atoms: list[Atom], name: str, places: tuple[bool, ...]) -> Iterator[list[Atom]]:
    """Put two steps of a request that follow each other into one, in the place of the first or of the later one."""
    for first, then in pairwise(_own(atoms, name)):
        both = _joined(_part(atoms[first]), _part(atoms[then]))
        for late in places if both else ():
            kept, left_out = (then, first) if late else (first, then)
            yield _with(atoms, {kept: {"step": {name: both}}, left_out: None})


def _joined(first: dict[str, Any] | None, then: dict[str, Any] | None) -> dict[str, Any] | None:
    """Join what two steps compute of a request; None if one does not go on where the other ends."""
    if not first or not then or first.get("drafts") or then["start"] != first["start"] + first["n"]:
        return None
    both = {**first, "n": first["n"] + then["n"]} | ({"drafts": then["drafts"]} if then.get("drafts") else {})
    key, more = "tables" if "tables" in first else "more", then.get("more")
    if "tables" in then:
        both = {name: given for name, given in both.items() if name != "more"} | {"tables": then["tables"]}
    elif more is not None:
        was = first.get(key, [[] for _ in more])
        both[key] = [[*old, *new] for old, new in zip(was, more, strict=True)]
    return both


def _less(atoms: list[Atom], name: str) -> Iterator[list[Atom]]:
    """Let a request need less: one row of its last step, no salt and the like, no tokens that are not computed."""
    parts = {at: part for at in _own(atoms, name) if (part := _part(atoms[at])) is not None}
    for at, part in [*parts.items()][-1:]:
        if part["n"] > 1 and not part.get("drafts"):
            yield _with(atoms, {at: {"step": {name: {**part, "n": 1}}}})
    if (asked := _asked(atoms, name)) is not None:
        event = atoms[asked][0].event
        for what in event.keys() & OPTIONAL:
            yield _with(atoms, {asked: {key: given for key, given in event.items() if key != what}})
        end = max((part["start"] + part["n"] for part in parts.values()), default=0)
        if end < len(event["tokens"]):
            yield _with(atoms, {asked: {**event, "tokens": event["tokens"][:end]}})
