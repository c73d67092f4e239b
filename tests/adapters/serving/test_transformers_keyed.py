"""Rules that a patch breaks in the pages of transformers' continuous batching: KEY's worked examples show each, and
one trace in which pages that nobody has are forgotten. Run by `nox -s steps-transformers`."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec

import pytest

if find_spec("transformers") is None:
    pytest.skip("transformers is not installed", allow_module_level=True)

from adapters.serving import patched_transformers as broken
from adapters.serving.rules import Rule
from kvadapters.engines.transformers.batching.keyed import keyed
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.judge import trial
from kvspec.contract import description
from kvspec.notation import from_sentence
from kvspec.reading.clauses import examples_of
from kvspec.session.driver import Session

RULES: tuple[Rule, ...] = (
    broken.keys_without_what_stands_before,
    broken.short_keys,
    broken.one_page_more_is_skipped,
    broken.found_pages_are_not_counted,
    broken.pages_of_others_go_back,
    broken.evicted_pages_are_found,
    broken.found_before_it_is_computed,
    broken.some_pages_are_lost,
    broken.same_pages_are_not_counted,
)
"""Those of pages and keys. Others are of forks, of the host's pool, or of the scheduler."""


FORGETS = "keyed page_size=2 pages=2: request xxy; finish 0; request yyx; finish 0; request xxz"
"""Worked examples of what is evicted first say nothing to an engine that forgets all at once."""


def failing() -> list[str]:
    """What goes wrong, in words."""
    about = description(keyed.describe())
    traces = fitted([*(example.trace for example in examples_of("keyed")), from_sentence(FORGETS)], about)
    judged = [trial.on(trace, partial(Session, keyed), about) for trace in traces]
    return [each.words for one in judged if one.failed for each in one.differences]


def test_right_pages_break_nothing() -> None:
    assert failing() == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_a_broken_rule_is_found(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    rule(monkeypatch)
    assert failing()
