"""`kvconform smoke ADAPTER`: runs a few steps in order and says what each failure means. A failure here means that
the adapter is connected wrongly; it says little about the cache behind it. Then it tries each ability once, and
proposes a claim.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from kvadapters.update.claims import BESIDE, SHOWN
from kvconform.commands.next_command import after_smoke
from kvconform.generate.claims import proposed_dialects
from kvconform.generate.claims.proposed_claim import Proposal
from kvconform.judge import trial
from kvconform.message import tell
from kvconform.worker.client import Worker, WorkerFailure, python_worker
from kvconform.worker.remote_session import RemoteSession
from kvreports import terminal
from kvspec.contract import Claim, Description
from kvspec.geometry import Config
from kvspec.notation import operation
from kvspec.operations.abilities import needed
from kvspec.registry import DIALECTS, KINDS, Needed, abilities
from kvspec.tables import table
from kvspec.trace import Trace


class Step(NamedTuple):
    """One operation, what it shows, and what its failure means."""

    do: str
    shows: str
    means: str


def plans() -> dict[str, tuple[Config, list[Step]]]:
    """Give, for each kind, the config to open and the steps to try, in order."""
    rows = table("kvconform.commands", "smoke")["smoke"]
    return {
        kind: (Config(**sizes), [Step(*s) for s in row["steps"]])
        for row in rows
        for kind, sizes in row["open"].items()
    }


def main(options: Namespace) -> int:
    """Try the steps on each declared kind, as far as they are claimed; return 1 if one fails."""
    with Worker(list(options.process) or python_worker(options.adapter, all=True)) as worker:
        try:
            adapter = worker.describe()
            claims = ", ".join(f"{p} at {c.level}" for p, c in adapter.chapters.items())
            told = f"it starts and describes itself: {f'{adapter.name} {adapter.version}'.strip()}: {claims}"
            print(terminal.paragraph(told, terminal.width(), "ok    ", " " * 6))
        except WorkerFailure as e:
            print(f"FAIL  it starts and describes itself: {e.verdict}: {e}")
            return 1
        fine = [_try(worker, adapter, kind, *plan) for kind, plan in plans().items() if kind in adapter.chapters]
        print("\n".join(_proposed(adapter, worker, not options.process)))
        sys.stdout.flush()
        tell(f"next: {after_smoke(all(fine), options)}")
        return int(not all(fine))


def _try(worker: Worker, adapter: Description, kind: str, config: Config, steps: list[Step]) -> bool:
    steps = [step for step in steps if adapter.able(needed(operation(step.do), kind, config))]
    steps = [_within(step, adapter.largest_append) for step in steps]
    config = adapter.widened(config.changed(dtype=adapter.dtypes[0]))
    trace = Trace(kind, config, tuple(operation(step.do) for step in steps))
    result = trial.on(trace, partial(RemoteSession, worker), adapter)
    tried = steps[: len(result.steps)]
    for step, (want, _) in zip(tried, result.steps, strict=False):
        failed = result.failed and step is tried[-1]
        as_owed = f"{want.result}, as expected" if not failed else f"expected {want.result}"
        shows = step.shows if adapter.plain else as_owed
        print(f"{'FAIL' if failed else 'ok  '}  {kind}: {step.do}: {shows}")
    if result.failed:
        print(f"      {result.differences[0].message}\n      Likely: {tried[-1].means}")
    return not result.failed


def _within(step: Step, most: int | None) -> Step:
    """The step with an append of no more rows than the adapter takes at once."""
    word, _, count = step.do.partition(" ")
    too_many = most is not None and word == "append" and int(count) > most
    return step._replace(do=f"append {most}", shows=f"{most} more come behind it") if too_many else step


def _proposed(adapter: Description, worker: Worker, python: bool) -> Iterator[str]:
    """Say which dialects explain differences, then what went against the spec for each ability. End with the
    claim, also in the words of `from_update` if that can have made the adapter."""

    def fails(trace: Trace, described: Description) -> bool:
        return trial.on(trace, partial(RemoteSession, worker), described, "visible").failed

    explained = proposed_dialects.proposed(adapter, fails)
    found = list(_explained(adapter, explained))
    yield from ["\nDialects by which it goes right:", *found] if found else []
    yield "\nEach ability tried once on a small cache:"
    proposal = Proposal(worker, explained)
    tried = list(_told(explained, proposal))
    yield from tried or ["  all went as the spec says"]
    claimed = proposal.description()
    if not claimed.chapters:
        yield "\nThere is nothing to claim yet: no cache takes rows."
        return
    words = "A first claim. Remove abilities that the engine does not promise; add those that it should have."
    yield "\n" + terminal.paragraph(words, terminal.width())
    if python and (kind := _updated(adapter)) in claimed.chapters:
        yield f"\nAs from_update takes it, beside what is given already:\n\n{_functions(adapter, claimed, kind)}"
    yield f"\nAs a description says it:\n\n{claim_json(claimed)}"


def _explained(before: Description, now: Description) -> Iterator[str]:
    """Each dialect that was added, with what it says."""
    for name, value in _new_dialects(before, now):
        yield f"  {name}: {value}\n      {DIALECTS[name.partition('.')[2]].says}"


def _updated(adapter: Description) -> str:
    """The one kind of an adapter that `from_update` can have made; empty if it made none such."""
    kinds = [chapter for chapter in adapter.chapters if chapter in KINDS]
    visible = all(claim.level == "visible" for claim in adapter.chapters.values())
    beside = set(adapter.chapters) - set(kinds) <= BESIDE
    return kinds[0] if len(kinds) == 1 and visible and beside else ""


def _functions(adapter: Description, claimed: Description, kind: str) -> str:
    """What `from_update` takes to claim this, where it is not what the adapter declares."""
    before, now = adapter.chapters[kind].without, claimed.chapters[kind].without
    able = set(abilities(kind)) - now - SHOWN
    told = {
        "also": tuple(sorted(able)) if able & before else (),
        "without": tuple(sorted(now - before)),
        "dialect": dict(_new_dialects(adapter, claimed)),
    }
    words = [f"    {name}={value!r}," for name, value in told.items() if value]
    words += [f"    # no longer without {name!r}" for name in sorted((before - now) & SHOWN)]
    return "\n".join(words) or "    nothing more: it claims this"


def _new_dialects(before: Description, now: Description) -> Iterator[tuple[str, int | str]]:
    """The dialects that were added, by chapter and name."""
    for chapter, claim in now.chapters.items():
        own = before.chapters[chapter].dialects if chapter in before.chapters else {}
        yield from ((f"{chapter}.{name}", value) for name, value in claim.dialects.items() if name not in own)


def _told(adapter: Description, proposal: Proposal) -> Iterator[str]:
    """Say what differs; and, in claimed chapters, what is missing or is right only at level visible."""
    for ability, attempt in proposal.attempts.items():
        claimed = adapter.claims(ability[0])
        if attempt.message and (attempt.done or claimed):
            yield _line(ability, "differs" if attempt.done else "not there", attempt.message, attempt.words)
        elif attempt.in_storage and adapter.claims(ability[0], "storage"):
            yield _line(ability, "right at level visible only", attempt.in_storage, attempt.words)


def _line(ability: Needed, how: str, message: str, words: str) -> str:
    return f"  {'.'.join(ability)}: {how}: {message.splitlines()[0]:.160}\n      {words}".rstrip()


def claim_json(claimed: Description) -> str:
    """Write a description as JSON: one chapter a line, without defaults."""
    usual = Description(claimed.name, claimed.chapters).to_json()
    fields = {
        name: value for name, value in claimed.to_json().items() if name == "name" or value != usual.get(name)
    }
    chapters = [f"{json.dumps(name)}: {json.dumps(_short(name, c))}" for name, c in claimed.chapters.items()]
    return json.dumps(fields)[:-1] + ', "chapters": {\n  ' + ",\n  ".join(chapters) + "}}"


def _short(chapter: str, claim: Claim) -> str | dict[str, Any]:
    """Shorten the claim on a chapter: only its level if it has all abilities, else the shorter list of those it
    has or lacks."""
    fields = {name: value for name, value in claim.to_json().items() if (name, value) != ("grows", "free")}
    able = [name for name in abilities(chapter) if name not in claim.without]
    if len(able) < len(claim.without):
        fields = {name: value for name, value in fields.items() if name != "without"} | {"with": able}
    return claim.level if fields == {"level": claim.level} else fields
