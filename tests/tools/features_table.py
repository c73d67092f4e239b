"""The table of the README: every feature of the systems this spec was written from, and what became of it.

`python -m tools.features_table` writes it anew from the published records: for each feature its clauses, and for
each published runtime the verdict on them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from kvreports.run import file as run_file
from kvspec.feature_table import SYSTEMS, Feature
from kvspec.records.run import BROKEN, Record

BEGIN, END = "<!-- begin: python -m tools.features_table -->", "<!-- end -->"
LATER = "in a later chapter"


def published(root: Path) -> dict[str, Record]:
    """The published records by the name of their runtime, the reference first."""
    paths = sorted((root / "reports" / "published").glob("*/record.json"))
    records = {p.parent.name: run_file.load(p) for p in paths}
    return dict(sorted(records.items(), key=lambda r: (r[0] != "reference", r[0])))


def table(records: dict[str, Record]) -> str:
    """The table as Markdown, a row for each feature."""
    verdicts = [{c["id"]: c["verdict"] for c in record["clauses"]} for record in records.values()]
    rows = [
        [system.name if i == 0 else "", feature.name, _clauses(feature), *(_said(feature, v) for v in verdicts)]
        for system in SYSTEMS
        for i, feature in enumerate(system.features)
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


def section(root: Path) -> str:
    """What stands between the marks of the README."""
    return f"{BEGIN}\n\n{table(published(root))}\n\n{END}"


def written(text: str, root: Path) -> str:
    """The README with its table made anew. Raises ValueError where it has no marks."""
    before, behind = text.index(BEGIN), text.index(END) + len(END)
    return text[:before] + section(root) + text[behind:]


def main(arguments: Sequence[str]) -> int:
    """Write the table into the README of this folder, or of the one named."""
    root = Path(arguments[0] if arguments else ".")
    readme = root / "README.md"
    readme.write_text(written(readme.read_text(encoding="utf-8"), root), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
