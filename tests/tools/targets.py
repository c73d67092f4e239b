"""The page of targets: how fast the GPU caches are to be, and what the published profiles say.

`python -m tools.targets` writes it from `targets.toml` and the profiles under `reports/published`;
`python -m tools.targets PROFILE.json...` prints it for these. Exit status: 0 all held, 1 one is missed, 2 usage.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, convert
from tabulate import tabulate

from kvreports import json_file
from kvreports.profile import figures, findings
from kvspec import tables
from kvspec.records.profile import Measurement, Profile

PAGE = Path("reports", "published", "TARGETS.md")

TEXT = """\
# Targets

How fast the GPU caches are to be, and what the profiles of this folder say: of all cases that a target is about,
the one that is furthest from it, and how many hold it. Where no profile of an adapter is published, its targets say
"not measured": `nox -s gpu` measures `cupy` and `cupy-fast` on an NVIDIA GPU. `python -m tools.targets`, run in
`tests/`, writes this page.

"""
"""What the page begins with."""

HEAD = ("adapter", "target", "wanted", "furthest from it", "case", "held", "measured on")


class Target(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `targets.toml`, which says what its fields mean."""

    says: str
    adapters: list[str]
    cases: str
    what: str
    unit: str
    wanted: float
    bytes: int = 0

    def number(self, case: Measurement, record: Profile) -> float | None:
        """The number of a case that is compared; None where it was not measured."""
        if self.what == "fraction":
            return None if case.fraction is None else case.fraction.median
        if self.what == "device":
            return _device(case)
        if self.what == "the best peer":
            return findings.over(case) or None
        if self.what.startswith("the peer "):
            name = self.what.removeprefix("the peer ")
            return next((peer.ratio.median for peer in case.peers if peer.peer == name), None)
        other = re.sub(self.cases, self.what.removeprefix("of "), case.id)
        return _ratio(case, next((m for m in record.measurements if m.id == other), None))

    def held(self, number: float) -> bool:
        """Whether a number is as wanted."""
        return number >= self.wanted if self.what == "fraction" else number <= self.wanted

    def measured(self, adapter: str, records: Sequence[Profile]) -> list[tuple[float, str, str]]:
        """The numbers of its cases with their ids and machines, the furthest from what is wanted first."""
        own = [
            (record, case)
            for record in records
            if record.adapter["name"] == adapter
            for case in record.measurements
        ]
        about = [(r, case) for r, case in own if re.search(self.cases, case.id) and case.bytes_read >= self.bytes]
        numbers = [
            (n, case.id, figures.machine(record))
            for record, case in about
            if (n := self.number(case, record)) is not None
        ]
        return sorted(numbers, reverse=self.what != "fraction")


def _device(case: Measurement) -> float | None:
    return None if case.device_ms is None else 1000 * case.device_ms.median


def _ratio(case: Measurement, other: Measurement | None) -> float | None:
    ours, theirs = _device(case), None if other is None else _device(other)
    return ours / theirs if ours and theirs else None


def targets() -> list[Target]:
    """All targets, in the order of the page."""
    return convert(tables.table("tools", "targets")["target"], list[Target])


def rows(records: Sequence[Profile]) -> Iterator[tuple[str, ...]]:
    """A row for each target and adapter that it is for."""
    for target, name in _each():
        yield (name, target.says, *_found(target, target.measured(name, records)))


def _each() -> Iterator[tuple[Target, str]]:
    return ((target, name) for target in targets() for name in target.adapters)


def _found(target: Target, numbers: list[tuple[float, str, str]]) -> tuple[str, ...]:
    bound = f"{'at least' if target.what == 'fraction' else 'at most'} {target.wanted:g} {target.unit}"
    if not numbers:
        return bound, "not measured", "–", "–", "–"
    worst, case, where = numbers[0]
    held = sum(target.held(number) for number, *_ in numbers)
    return bound, f"{worst:.2f}", f"`{case}`", f"{held} of {len(numbers)}", where


def page(records: Sequence[Profile]) -> str:
    """The page as Markdown."""
    return TEXT + tabulate(list(rows(records)), HEAD, tablefmt="github", disable_numparse=True) + "\n"


def published(root: Path) -> list[Profile]:
    """The published profiles."""
    return [json_file.load(p, Profile) for p in sorted((root / "reports" / "published").glob("*/profile.json"))]


def main(paths: Sequence[str]) -> int:
    """Write the page, or print it for the profiles given."""
    root = Path(__file__).parents[2]
    records = [json_file.load(Path(p), Profile) for p in paths] or published(root)
    if paths:
        print(page(records))
    else:
        (root / PAGE).write_text(page(records), encoding="utf-8")
    return int(any(not target.held(n) for target, name in _each() for n, *_ in target.measured(name, records)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
