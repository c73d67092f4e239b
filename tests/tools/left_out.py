"""What the adapters of released engines leave out of their claims, by `kvconform smoke`.

`python -m tools.left_out` tries the abilities of the adapters whose engines are installed, or of those named, or of
none by the word `none`, and writes what it found of them to `left_out.json`; then the page, LEFT_OUT.md, from that
and the reasons in `left_out.toml`. Exit status: 0 each choice has a reason, 1 one has none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tabulate import tabulate

from kvadapters.find import ENGINES
from kvconform.generate.claims import proposed_dialects
from kvconform.generate.claims.proposed_claim import Proposal
from kvconform.judge import trial
from kvconform.worker.client import Worker, WorkerFailure, python_worker
from kvconform.worker.remote_session import RemoteSession
from kvspec import tables
from kvspec.contract import Description
from kvspec.errors import CannotRun
from kvspec.trace import Trace

FOLDER = Path(__file__).parents[2] / "reports" / "published"
FOUND, PAGE = FOLDER / "left_out.json", FOLDER / "LEFT_OUT.md"

NOT_TRIED = {
    "llama-window-tight": "llama-cpp-python",
    "transformers-quantized-fp8": "transformers",
    "transformers-padded": "transformers",
    "transformers-batch-quantized": "transformers",
    "transformers-batch-encoder-decoder": "transformers",
    "transformers-batch-hybrid": "transformers",
    "transformers-batch-linear": "transformers",
    "transformers-encoder-decoder": "transformers",
    "transformers-sparse": "transformers",
    "transformers-minimax": "transformers",
    "transformers-hybrid-static-recording": "transformers",
    "transformers-layers-encoder-decoder": "transformers",
    "transformers-indexed": "transformers",
    "transformers-static-indexed": "transformers",
    "transformers-mllama": "transformers",
    "easydel-batch": "easydel",
    "transformers-joined": "transformers",
}
"""Adapters that nobody tried yet, and the packages that they take."""


def tried(name: str) -> dict[str, Any] | None:
    """What smoke finds of an adapter beside its claim; None where its engine is not installed."""
    with Worker(python_worker(name, all=True)) as worker:
        try:
            adapter = worker.describe()
        except (WorkerFailure, CannotRun):
            return None

        def fails(trace: Trace, described: Description) -> bool:
            return trial.on(trace, partial(RemoteSession, worker), described, "visible").failed

        explained = proposed_dialects.proposed(adapter, fails)
        return {"version": adapter.version, **found(adapter, Proposal(worker, explained))}


def found(adapter: Description, proposal: Proposal) -> dict[str, dict[str, str]]:
    """The abilities that are done and not claimed, by whether they went as the spec says: what went otherwise."""
    sorts: dict[str, dict[str, str]] = {"right": {}, "wrong": {}}
    for ability, attempt in proposal.attempts.items():
        claimed = adapter.claims(ability[0]) and adapter.able([ability])
        if attempt.done and not claimed:
            differs = attempt.message.partition("\n")[0]
            words = f"{attempt.words}: {differs}" if differs else ""
            sorts["wrong" if differs else "right"][".".join(ability)] = words
    return sorts


def reasons() -> Mapping[str, Mapping[str, str]]:
    """Why an adapter leaves an ability out: by adapter, or by `all`, and by ability."""
    return tables.table("tools", "left_out")


def reason(name: str, ability: str) -> str:
    """Why an adapter leaves an ability out; empty if nothing is said."""
    said = reasons()
    kind = name.partition("-")[0]
    return next((said[who][ability] for who in (name, kind, "all") if ability in said.get(who, {})), "")


def lines(name: str, row: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """What the page says of an adapter."""
    for sort in ("right", "wrong"):
        for ability, differs in row[sort].items():
            yield name, row["version"], ability, sort, f"`{differs}`" if differs else "", reason(name, ability)


HEAD = ("adapter", "version", "left out", "goes", "what differs", "why it is not claimed")
TEXT = """\
# What adapters leave out

An adapter is judged on what it claims, so what it leaves out is a choice. `kvconform smoke` tries each ability of
the kinds that an adapter opens once, and proposes the largest claim. Here is what {count} adapters of released
engines do and do not claim, whether it went as the spec says in the one trace that shows it, and why it stays out.
All that they do is claimed by: {names}. Not tried yet: {rest}.
`python -m tools.left_out`, run in `tests/` where the engines are installed, makes this page.

"""


def page(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The page as Markdown."""
    said = [line for name in ENGINES if name in rows for line in lines(name, rows[name])]
    clean = [name for name in ENGINES if name in rows and not (rows[name]["right"] or rows[name]["wrong"])]
    rest = ", ".join(name for name in NOT_TRIED if name not in rows)
    text = TEXT.format(count=len(rows), names=", ".join(clean), rest=rest)
    return text + tabulate(said, HEAD, tablefmt="github", disable_numparse=True) + "\n"


def without_reason(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The choices for which no reason is given."""
    return [f"{line[0]}: {line[2]}" for name, row in rows.items() for line in lines(name, row) if not line[-1]]


def main(names: Sequence[str]) -> int:
    """Try adapters, and write what was found and the page."""
    rows = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
    for name in () if "none" in names else names or ENGINES:
        if (row := tried(name)) is not None:
            rows[name] = row
            print(name, *row["right"], "wrong:", *row["wrong"], flush=True)
            FOUND.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(rows), encoding="utf-8")
    print(*without_reason(rows), sep="\n", file=sys.stderr)
    return int(bool(without_reason(rows)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
