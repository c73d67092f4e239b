"""What may be why a trace fails: a refusal that showed all that a cache keeps is not."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kvadapters.reference import Reference
from kvconform.judge import trial
from kvref.caches.growing import Growing
from kvspec.contract import description
from kvspec.notation import from_sentence
from kvspec.session.driver import Session

TRACE = from_sentence("growing: append 2; append 1 v_dim=9; append 1")


class Later(Growing):
    """The keys of what comes third are zeros."""

    def append(self, keys: Any, values: Any, *more: Any) -> None:
        """Append zeros once there are two rows."""
        super().append(keys * 0 if self.offset == 2 else keys, values, *more)


class Wrong(Reference):
    """The reference with that cache."""

    caches: ClassVar[Any] = {**Reference.caches, "growing": Later}


@pytest.mark.parametrize(("level", "suspected"), [("storage", False), ("visible", True)])
def test_a_refusal_is_suspected_where_it_may_have_changed_what_nobody_saw(level: str, suspected: bool) -> None:
    about = description(Wrong().describe())
    about = about if level == "storage" else about.at_most("visible")
    seen = trial.on(TRACE, lambda observe: Session(Wrong(), observe), about, level)
    assert seen.failed and [want.result for want, _ in seen.steps] == ["ok", "refused", "ok"]
    assert ("CACHE-2" in seen.suspected()) is suspected
