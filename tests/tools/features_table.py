"""The page of features: every feature of the systems this spec was written from, and what became of it.

`python -m tools.features_table` writes it from `kvspec/feature_table.toml`, the records of the chapters
and the published records: for each feature its clauses, and for each published runtime the verdict on them.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from kvreports import json_file
from kvspec import tables
from kvspec.chapters.record import Origin
from kvspec.errors import BadInput
from kvspec.records.run import BROKEN, Record
from kvspec.registry import RECORDS

PAGE = Path("reports", "published", "FEATURES.md")

TEXT = """\
# Feature by feature

The systems this spec was written from, what each of them does, the clauses about it, and the verdicts of the
published runs. `python -m tools.features_table`, run in `tests/`, writes this page.

"""
"""What the page begins with."""
LATER = "in a later chapter"


class Feature(NamedTuple):
    """One thing a system does: a few words, and the clauses that bind it, as `GROW-1..4 RING-2`."""

    name: str
    bound_by: str = ""

    @property
    def clauses(self) -> tuple[str, ...]:
        """The ids of its clauses; none while its chapter is to come."""
        return tuple(i for part in self.bound_by.split() for i in _ids(part))


def _ids(part: str) -> list[str]:
    parts = re.fullmatch(r"([A-Z]+)-(\d+)(?:\.\.(\d+))?", part)
    if parts is None:
        raise BadInput(f"{part!r} is no clause and no range of clauses")
    first, last = int(parts[2]), int(parts[3] or parts[2])
    return [f"{parts[1]}-{n}" for n in range(first, last + 1)]


def systems() -> dict[str, list[Feature]]:
    """The features of each system, by its name, in the order of the chapters."""
    rows = [Origin(**system) for system in tables.table("kvspec", "feature_table")["system"]]
    rows += [record.origin for record in RECORDS.values() if record.origin]
    return {system.name: [Feature(*f) for f in system.features.items()] for system in rows}


def published(root: Path) -> dict[str, Record]:
    """The published records by the name of their runtime, the reference first."""
    paths = sorted((root / "reports" / "published").glob("*/record.json"))
    records = {p.parent.name: json_file.load(p, Record) for p in paths}
    return dict(sorted(records.items(), key=lambda r: (r[0] != "reference", r[0])))


def table(records: dict[str, Record]) -> str:
    """The table as Markdown, a row for each feature."""
    verdicts = [{c.id: c.verdict for c in record.clauses} for record in records.values()]
    rows = [
        [name if i == 0 else "", feature.name, _clauses(feature), *(_said(feature, v) for v in verdicts)]
        for name, features in systems().items()
        for i, feature in enumerate(features)
    ]
    return tabulate(rows, ["system", "feature", "clauses", *records], tablefmt="github")


def _clauses(feature: Feature) -> str:
    return feature.bound_by.replace("..", "–").replace(" ", ", ") or LATER


def _said(feature: Feature, verdicts: dict[str, str]) -> str:
    """What is said of all clauses of a feature in one word, or how many are said what."""
    found = Counter(verdicts.get(i, "not run yet") for i in feature.clauses)
    if len(found) < 2:
        return next(iter(found), "")
    broken = [v for v in found if v in BROKEN]
    return ", ".join(f"{found[v]} {v}" for v in [*broken, *(v for v in found if v not in broken)])


def page(root: Path) -> str:
    """The whole page, from the records published in this checkout."""
    return f"{TEXT}{table(published(root))}\n"


def main(arguments: Sequence[str]) -> int:
    """Write the page of this checkout, or of the one named."""
    root = Path(arguments[0]) if arguments else Path(__file__).parents[2]
    (root / PAGE).write_text(page(root), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
