"""The cost bounds of questions: none."""

from __future__ import annotations

from kvspec.costs.terms import nothing

askappend = askrestore = nothing
