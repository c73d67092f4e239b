"""The cost bounds of plans: none, they are questions."""

from __future__ import annotations

from kvspec.costs.terms import nothing

plan = fit = nothing
