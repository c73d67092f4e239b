"""The result of proofs: the claim, its assumptions, or the counterexample, as JSON and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvspec.notation import sentence
from kvworkshop.prove.proof import Proof

Document = dict[str, Any]
VERSION = 1


@dataclass(frozen=True)
class Judge:
    """The adapter that was judged, the oracle, and the level."""

    adapter: str
    oracle: str
    level: str

    @property
    def by_definition(self) -> bool:
        """Tell whether it is the reference, judged by the list model that defines it."""
        return (self.adapter, self.oracle) == ("reference", "list model")


def document(proofs: list[Proof], judge: Judge) -> Document:
    """Build the JSON document of all results."""
    failed = next((p for p in proofs if p.counterexample is not None), None)
    return {
        "kvprove": VERSION,
        "adapter": judge.adapter,
        "oracle": judge.oracle,
        "level": judge.level,
        "proofs": [_proof(p, judge) for p in proofs],
        "claim": None if failed else claim(proofs, judge),
        "assumptions": [] if failed else assumptions(proofs, judge),
        "notes": [] if failed else notes(proofs, judge),
        "counterexample": counterexample(failed) if failed else None,
    }


def _proof(p: Proof, judge: Judge) -> Document:
    return {
        "configuration": p.plan.name,
        "kind": p.plan.start.kind,
        "config": p.plan.start.config.to_json(),
        "states": p.states,
        "transitions": p.transitions,
        "k": p.k,
        "identifiers": p.longest,
        "told_apart": p.told_apart,
        "traces": p.traces,
        "operations": p.operations,
        "seconds": round(p.seconds, 1),
        "result": _result(p, judge),
    }


def _result(p: Proof, judge: Judge) -> str:
    if p.counterexample is not None:
        return "counterexample"
    if not _supported(judge):
        return "agrees"
    if not p.whole:
        return "agrees; not all is claimed"
    return "holds" if p.holds else "agrees; states not told apart"


def _supported(judge: Judge) -> bool:
    """Tell whether the compared data distinguishes states: at level visible only for the reference."""
    return judge.level == "storage" or judge.by_definition


def claim(proofs: list[Proof], judge: Judge) -> str:
    """Write the claim, with exact counts."""
    held = [p for p in proofs if p.holds] if _supported(judge) else []
    longest = max((p.longest for p in proofs), default=0)
    done = (
        f"The state graphs of {_configurations(len(proofs))} are closed: {sum(p.states for p in proofs)} states, "
        f"{sum(p.transitions for p in proofs)} transitions. From every state, {_sequences(proofs)} and a "
        f"sequence that tells the state reached from all others (up to {longest} operations), {judge.adapter} did "
        f"what the {judge.oracle} does: {sum(p.traces for p in proofs)} traces, "
        f"{sum(p.operations for p in proofs)} operations."
    )
    if not all(p.whole for p in proofs):
        done += f" Operations that {judge.adapter} does not claim were left out, and values that it does not take."
    if not held:
        return done + " Nothing follows for longer traces: the compared values do not tell all states apart."
    return done + (
        f" So in {len(held)} of them it agrees with the {judge.oracle} on every sequence of these moves, however "
        f"long, under the assumptions."
    )


def _configurations(count: int) -> str:
    return "1 configuration" if count == 1 else f"{count} configurations"


def _sequences(proofs: list[Proof]) -> str:
    most = sorted({p.k + 1 for p in proofs})
    words = " or ".join("every move" if n == 1 else f"every sequence of up to {n} moves" for n in most)
    return f"after {words}"


def assumptions(proofs: list[Proof], judge: Judge) -> list[str]:
    """List the assumptions of the claim."""
    found = [
        "Behaviour does not depend on the data of rows.",
        "Behaviour does not depend on the absolute position: past a window, positions may be shifted.",
    ]
    if judge.by_definition:
        return [*found, "The list model tells no two histories apart that lead to one state of the reference."]
    return [*found, *(_at_most(k) for k in sorted({p.k for p in proofs}))]


def _at_most(k: int) -> str:
    more = (
        "no more states than the reference"
        if k == 0
        else f"at most {k} more state{'s' * (k > 1)} than the reference"
    )
    return f"It has {more} (k = {k})."


def notes(proofs: list[Proof], judge: Judge) -> list[str]:
    """Explain the assumption that fails most easily."""
    if judge.by_definition:
        return []
    length = max((p.k + 1 for p in proofs), default=1)
    tried = "1 move" if length == 1 else f"{length} moves"
    return [
        "Two buffers used alternately (ping-pong) break the last assumption: the buffer in use is part of the "
        "state, so there may be twice as many states as in the reference, far more than k. For such an adapter "
        f"the claim is only that it agrees on the traces tried: from every state, {tried}."
    ]


def counterexample(p: Proof) -> Document:
    """Give the shortest trace that differs."""
    seen = p.counterexample
    assert seen is not None
    short = seen.trace.cut(len(seen.steps))
    return {
        "configuration": p.plan.name,
        "operations": len(short.ops),
        "words": sentence(short),
        "trace": short.to_json(),
        "clauses": list(seen.blamed),
        "message": seen.differences[0].message,
        "shortest": p.shortest,
        "all_agree_up_to": p.agreed,
    }


def printed(made: Document) -> str:
    """Write the claim or the counterexample as text."""
    found = made["counterexample"]
    if found is None:
        assumed = ["Assumptions:", *(f"  {a}" for a in made["assumptions"])]
        return "\n".join([made["claim"], "", *assumed, *([""] + made["notes"] if made["notes"] else [])])
    which = "A shortest counterexample" if found["shortest"] else "The shortest counterexample of those tried"
    agreed = f"All traces of {found['all_agree_up_to']} operations of this alphabet agree."
    lines = [
        f"{which}, {found['operations']} operations, of {found['configuration']}:",
        f"  {found['words']}",
        f"  {', '.join(found['clauses']) or 'no clause'}: {found['message']}",
        *([agreed] if found["all_agree_up_to"] else []),
    ]
    return "\n".join(lines)
