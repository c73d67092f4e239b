"""A clause that is a law holds only where one of its laws was judged: an example shows it once."""

from __future__ import annotations

from collections import Counter

import pytest

from kvadapters.reference import Reference
from kvconform.checks import laws
from kvconform.laws.registry import LAWS
from kvconform.runner.verdict.tally import Tally
from kvconform.runner.verdict.verdict import Evidence, Verdict, verdict_on
from kvspec.contract import Description, description
from kvspec.reading.clauses import index

WHOLE = description(Reference().describe())
CLAUSES = [clause.id for clause in index().values() if clause.law]


def verdict(clause: str, adapter: Description, *sources: str, shut_out: dict[str, str] | None = None) -> Verdict:
    """The verdict on a clause that these sources of traces exercised."""
    exercised = {clause: Counter(dict.fromkeys(sources, 3))} if sources else {}
    tally = Tally(exercised=exercised, oracles={clause: "reference"}, shut_out=shut_out or {})
    return verdict_on(Evidence(index()[clause], tally, adapter, partial=False))


@pytest.mark.parametrize("clause", CLAUSES)
def test_an_example_alone_is_no_law(clause: str) -> None:
    assert verdict(clause, WHOLE, "example", "cover", "explore").name == "NOT_RUN"
    assert verdict(clause, WHOLE, "example", "law").name == "PASS"


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_law_that_the_claim_shuts_out_says_so(clause: str) -> None:
    checks = [check.id for check in laws.checks() if check.clause == clause]
    assert len(checks) == sum(law.clause == clause for law in LAWS)
    told = verdict(clause, WHOLE, "example", shut_out=dict.fromkeys(checks, "no pair suits"))
    assert told == ("NOT_CLAIMED", "no pair suits")
    some = verdict(clause, WHOLE, "example", shut_out=dict.fromkeys(checks[1:], "no pair suits"))
    assert some.name == "NOT_RUN"


def test_a_law_on_what_is_not_declared_is_not_claimed() -> None:
    store = description({"name": "a store", "chapters": dict.fromkeys(("store", "attention"), "storage")})
    name, reason = verdict("ATTN-33", store, "example")
    assert (name, "takes growing, which the adapter does not declare" in reason) == ("NOT_CLAIMED", True)
