"""The record of `kvconform mutants`: one JSON document that tells whether and how every planted fault was found.

The types below name its fields; `kvspec/schemas/mutants.json` is the published schema.
"""

from __future__ import annotations

from typing import TypedDict

VERSION = 1

SOURCES = ("examples", "cover", "explored")
"""Where traces come from: the chapters' worked examples, the frozen covers, what exploration draws."""

MutantRecord = TypedDict(
    "MutantRecord",
    {
        "id": str,
        "class": str,
        "link": str,
        "says": str,
        "clauses": list[str],
        "killed": bool,
        "by": list[str],
        "operations": int,
        "equivalent": str,
        "control": str,
        "right": bool | None,
        "sources": dict[str, bool],
        "trace": str,
        "message": str,
        "seconds": float,
    },
)
"""One mutant. `class`: of the catalogue's bugs, or systematic, control and so on; `link`: where the bug was seen;
`says`: what it does; `clauses`: those it breaks; `by`: the clauses blamed on its shortest trace, which is `trace`,
of so many `operations`; `equivalent`: why nothing can find it; `control`: lives or dies, where it is one; `right`:
whether a clause that it breaks was blamed; `sources`: of each source that was tried, whether it found it."""


class Matrix(TypedDict):
    """The whole record."""

    kvmutants: int
    spec: dict[str, str]
    seconds: float
    mutants: list[MutantRecord]


def result(m: MutantRecord) -> str:
    """What came of a mutant, in capitals where it is not as it must be."""
    if m["control"] == "lives":
        return "ACCUSED" if m["killed"] else "lives"
    if m["equivalent"]:
        return "FOUND" if m["killed"] else "equivalent"
    return "killed" if m["killed"] else "SURVIVED"
