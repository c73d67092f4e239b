"""A log in words: its events, a line each, and what was seen in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kvconform.steps.log_file import Line


def counted(count: int, what: str) -> str:
    """Say how many there are, such as `1 page` or `2 pages`."""
    return f"{count} {what}{'s' * (count != 1)}"


def told(line: Line) -> str:
    """Say what an event is, with the line of the file and the number of its step."""
    return f"line {line.number}  {_EVENTS.get(line.verb, _any)(line)}"


def _add(line: Line) -> str:
    more = [f"{what} {line.event[what]}" for what in ("salt", "adapter", "media") if line.event.get(what)]
    return ", ".join([f"add {line.event['add']}: {counted(len(line.event['tokens']), 'token')}", *more])


def _step(line: Line) -> str:
    return f"step {line.step}: " + "; ".join(_part(name, given) for name, given in line.event["step"].items())


def _part(name: str, given: Mapping[str, Any]) -> str:
    end = given["start"] + given["n"] - 1
    words = [f"{name} computes {given['start']}" + (f" to {end}" if given["n"] > 1 else "")]
    words += [f"{counted(len(given['drafts']), 'draft')}"] if given.get("drafts") else []
    for key, what in (("tables", "pages"), ("more", "more pages")):
        if key in given:
            words.append(f"{what} " + " | ".join(" ".join(map(str, table)) for table in given[key]))
    return ", ".join(words)


def _sampled(line: Line) -> str:
    chosen = [f"{name} {counted(len(tokens), 'token')}" for name, tokens in line.event["sampled"].items()]
    return f"sampled: {', '.join(chosen)}"


def _any(line: Line) -> str:
    return " ".join(f"{key} {value}" for key, value in line.event.items())


_EVENTS = {"add": _add, "step": _step, "sampled": _sampled}

SUMMARY = {
    "steps": "steps",
    "requests": "requests",
    "rows": "rows written",
    "reused": "tokens reused",
    "hits": "hits",
    "evictions": "pages taken again",
    "preemptions": "preemptions",
    "accepted": "drafts accepted",
    "rejected": "drafts rejected",
    "copies": "copies",
    "loads": "loads",
}
"""What is counted, and what it is called."""


def summary(counts: Counter[str]) -> str:
    """Say what was seen in a log."""
    return ", ".join(
        f"{counts[name]:,} {what}" for name, what in SUMMARY.items() if counts[name] or name == "steps"
    )
