"""Checks from exploration: traces that Hypothesis draws on larger configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from kvconform.checks.check import Check
from kvconform.generate.fit_to_adapter import fitted
from kvconform.generate.strategies import (
    attention,
    batch,
    bucket,
    caches,
    copy,
    draft,
    mem,
    page,
    residency,
    rope,
    sample,
    store,
)
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS
from kvspec.registry import CACHES


@dataclass(frozen=True)
class Exploration:
    """What one check draws."""

    name: str
    needs: tuple[str, ...]
    """Chapters it takes beside its own."""
    strategy: Callable[[], Any]
    counted_as: str = ""
    """What its coverage is counted under, where that is not the chapter."""


def _cache(kind: str, operations: tuple[str, ...], name: str = "", *needs: str) -> Exploration:
    return Exploration(name or kind, (kind, *needs), partial(caches.traces, kind, operations), kind)


EXPLORATIONS: dict[str, tuple[Exploration, ...]] = {
    "growing": (_cache("growing", caches.BASE),),
    "ring": (_cache("ring", caches.BASE),),
    "mask": tuple(_cache(kind, caches.MASKS) for kind in CACHES),
    "snapshot": (
        *(_cache(kind, caches.SNAPSHOTS) for kind in CACHES),
        *(_cache(kind, caches.EVERYTHING, f"everything/{kind}", "mask") for kind in CACHES),
    ),
    "copy": (Exploration("copy", (), copy.explored),),
    "draft": (
        Exploration("draft", CACHES, draft.explored),
        Exploration("everything", (*CACHES, "mask", "snapshot"), partial(draft.explored, draft.EVERYTHING)),
    ),
    "store": (Exploration("store", (), store.explored),),
    "batch": (Exploration("batch", ("store",), batch.explored, "store"),),
    "mem": (
        *(Exploration(kind, (kind,), partial(mem.explored, kind)) for kind in (*CACHES, "store")),
        Exploration("batch", ("store", "batch"), partial(mem.explored, "batch")),
    ),
    "residency": (
        *(
            Exploration(kind, (kind,), partial(residency.explored, kind))
            for kind in (*CACHES, "copy", "bucket", "store", "page")
        ),
        Exploration("batch", ("store", "batch"), partial(residency.explored, "batch")),
        Exploration(
            "attention", (*CACHES, "store", "batch", "attention"), partial(residency.explored, "attention")
        ),
    ),
    "attention": (
        *(Exploration(kind, (kind,), partial(attention.explored, kind)) for kind in CACHES),
        Exploration("store", ("store", "batch"), partial(attention.explored, "store")),
    ),
    "page": (
        Exploration("page", (), page.explored),
        Exploration("attention", ("attention",), partial(page.explored, more=("attend",) * 5)),
    ),
    "bucket": (Exploration("bucket", (), bucket.explored),),
    "rope": (Exploration("rope", (*CACHES, "store", "attention"), rope.explored),),
}
"""What is drawn for each chapter. Most real bugs lie between two features: some mix several chapters."""


def checks() -> Iterator[Check]:
    """One for each exploration of each chapter."""
    for chapter in CHAPTERS:
        for e in EXPLORATIONS[chapter]:
            run = partial(_explore, strategy=e.strategy, counted_as=e.counted_as or chapter)
            yield Check(f"{chapter}/explore/{e.name}", chapter, frozenset((chapter, *e.needs)), run)


def _explore(under_test: AdapterUnderTest, strategy: Callable[[], Any], counted_as: str) -> None:
    judge(under_test, strategy(), counted_as)


def judge(under_test: AdapterUnderTest, strategy: Any, counted_as: str) -> None:
    """Judge traces that a strategy draws."""
    traces = sample.some(strategy, under_test.traces, under_test.seed)
    under_test.judge_all(fitted(traces, under_test.adapter), "explore", counted_as, watch=True)
