"""The known bugs: real ones that somebody made, and common ones that anybody could make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.resources import files

from kvconform.bugs.mutant import Mutant
from kvconform.bugs.planting import PLANTED, of_row
from kvspec.errors import NotWhole
from kvspec.reading.anomalies import anomalies
from kvspec.registry import RECORDS
from kvspec.tables import table

BOTH, MODULE, TABLE = ("py", "toml"), ("py",), ("toml",)

SECTIONS = {
    "extra_rows": TABLE,
    "missing_rows": BOTH,
    "misplaced_rows": BOTH,
    "visible_rows": BOTH,
    "operations": BOTH,
    "at_scale": BOTH,
    "unseen": MODULE,
    "unseen_beside": MODULE,
    "snapshots": MODULE,
    "scales": MODULE,
    "latents": MODULE,
    "residual": MODULE,
    "inputs": MODULE,
}
"""The files of common bugs that belong to no chapter. First come the groups of the appendix of anomalies.
`at_scale` bugs begin beyond a size or after a long life. `unseen` bugs show only while nobody observes, or where
rows are alike. `snapshots` bugs need several snapshots. `scales`, `latents` and `residual` bugs concern scales in
caches of many sequences, latent rows and residual windows. `inputs` bugs show only where inputs are not plain."""


def real() -> Iterator[Mutant]:
    """Every real bug that is planted, chapter by chapter: in the files that the chapters' records list."""
    return _listed("kvconform.bugs.real")


def common() -> Iterator[Mutant]:
    """Give every common bug in the order of the appendix of anomalies, those of chapters among them."""
    order = list(anomalies())
    return iter(
        sorted((*common_in(*SECTIONS), *_listed("kvconform.bugs.common")), key=lambda m: order.index(m.anomaly))
    )


def common_in(*sections: str) -> Iterator[Mutant]:
    """The common bugs of these sections."""
    for name in sections:
        yield from _planted("kvconform.bugs.common", name, SECTIONS[name])


def _listed(package: str) -> Iterator[Mutant]:
    """Give the bugs of a folder that the chapters' records list, chapter by chapter."""
    room = package.rpartition(".")[2]
    for chapter, record in RECORDS.items():
        yield from _planted(package, chapter, record.rooms.get(room, ()))


def _planted(package: str, name: str, listed: tuple[str, ...]) -> Iterator[Mutant]:
    """The bugs of a module, then those of the table beside it. Raises NotWhole unless just the listed files are
    there."""
    for suffix in BOTH:
        if files(package).joinpath(f"{name}.{suffix}").is_file() != (suffix in listed):
            raise NotWhole(f"{package}: {name}.{suffix} is not there, or is not listed")
    if "py" in listed:
        yield from PLANTED[import_module(f"{package}.{name}").__name__]
    if "toml" in listed:
        yield from (of_row(id_, row) for id_, row in table(package, name).items())


def demand_planted(mutants: Iterable[Mutant]) -> None:
    """Make each known bug among these once. Raises BadInput for one that cannot be planted: a hunt would take it
    for a cache that dies, and count it as found."""
    for mutant in mutants:
        if mutant.id in known_bugs():
            mutant.adapter()


@cache
def known_bugs() -> dict[str, Mutant]:
    """All bugs that have a name, by their ids: real ones, then common ones."""
    return {m.id: m for m in (*real(), *common())}
