"""Runs the worked examples of all chapters on the reference, and says which tables are wrong.

`python -m tools.check_examples`, run in `tests/`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from kvadapters.reference import Reference
from kvconform.judge.trial import run
from kvconform.judge.worked_examples import disagreements
from kvconform.oracle.reference import CitingReference
from kvspec.contract import description
from kvspec.reading.clauses import index


def check_all() -> Iterator[str]:
    """Every disagreement between a chapter's tables and the reference."""
    reference = description(Reference().describe())
    for clause in index().values():
        for example in clause.examples:
            for level in ("storage", "visible"):
                seen = run(example.trace, CitingReference(), reference, level)
                yield from disagreements(example, seen, reference)
                yield from (f"{example.id}: {level}: {d.message}" for d in seen.differences)
                cited = set(seen.exercised())
                if (level == "storage" or clause.level == "visible") and not clause.law and clause.id not in cited:
                    yield f"{example.id}: {level}: the {seen.oracle} does not cite {clause.id} in it"


if __name__ == "__main__":
    found = list(check_all())
    print("\n".join(found) or f"{sum(len(c.examples) for c in index().values())} worked examples hold")
    sys.exit(bool(found))
