"""All laws, in the order of the clauses that state them."""

from __future__ import annotations

from kvconform.laws import law
from kvspec.reading.clauses import index
from kvspec.registry import modules

modules("kvconform.laws")  # importing a module registers its laws

LAWS = tuple(sorted(law.LAWS, key=lambda x: list(index()).index(x.clause)))
