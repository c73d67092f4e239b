"""All laws, in the order of the clauses that state them; on each kind of cache that the chapters' records list."""

from __future__ import annotations

from kvconform.laws import law
from kvspec.errors import NotWhole
from kvspec.reading.clauses import index
from kvspec.registry import RECORDS, modules, opened

modules("kvconform.laws")  # importing a module registers its laws


def demand_all() -> None:
    """Raise NotWhole unless each clause that is a law is drawn on the kinds that its chapter's record lists."""
    listed = {(c, kind) for r in RECORDS.values() for kind, clauses in r.laws.items() for c in clauses}
    there = {(each.clause, each.kind) for each in law.LAWS}
    if wrong := {c.id for c in index().values() if c.law} ^ {clause for clause, _ in listed}:
        raise NotWhole(f"a law is marked in its chapter, and [laws] of its record lists it; not {sorted(wrong)}")
    for clause, kind in sorted(listed):
        if index()[clause].general and clause not in opened(kind).general:
            raise NotWhole(f"[laws] of a record lists {clause} on {kind}, whose [kind] general does not list it")
    for clause, kind in sorted(listed ^ there):
        where = f"kvconform/laws/{index()[clause].chapter}.py has no"
        raise NotWhole(
            f"{where} law {clause} on {kind}, which the record lists"
            if (clause, kind) in listed
            else f"[laws] of the record lists no {clause} on {kind}, which is there"
        )


demand_all()
LAWS = tuple(sorted(law.LAWS, key=lambda x: list(index()).index(x.clause)))
