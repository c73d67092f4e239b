"""Prints the table of hostile cases: each test is a case, and says with `must` what it must get."""

from __future__ import annotations

from typing import Any

import pytest

MUST = "must"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--table` prints every case."""
    parser.addoption("--table", action="store_true", help="print the table of hostile cases")


@pytest.fixture(autouse=True)
def _must(request: pytest.FixtureRequest) -> None:
    """Note what the case must get: its parameter `must`, or its marker."""
    parameters = getattr(getattr(request.node, "callspec", None), "params", {})
    marker = request.node.get_closest_marker(MUST)
    must = parameters.get(MUST, marker.args[0] if marker else None)
    assert must is not None, "a hostile case says what it must get"
    request.node.user_properties.append((MUST, str(must)))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """A line for each case: its file, its name, what it must get, whether it holds."""
    if not config.getoption("--table", default=False):
        return
    reports = [
        (report, state == "passed")
        for state in ("passed", "failed", "error")
        for report in terminalreporter.stats.get(state, ())
        if "hostile/" in getattr(report, "nodeid", "")
    ]
    rows = sorted(
        (*_named(report.nodeid), dict(report.user_properties).get(MUST, ""), holds) for report, holds in reports
    )
    for file, name, must, holds in rows:
        terminalreporter.write_line(f"{file:13} {name:86.86} {must:36.36} {'holds' if holds else 'DOES NOT HOLD'}")
    broken = sum(not holds for *_, holds in rows)
    terminalreporter.write_line(f"{len(rows)} hostile cases: {f'{broken} do not hold' if broken else 'all hold'}")


def _named(nodeid: str) -> tuple[str, str]:
    """The file of a test and the name of its case: its own name, and the id of its parameters."""
    path, _, test = nodeid.partition("::")
    own, _, parameters = test.partition("[")
    file = path.rpartition("/test_")[2].removesuffix(".py")
    named = [own.removeprefix("test_"), parameters.removesuffix("]")]
    return file, ": ".join(filter(None, named)).replace("_", " ")
