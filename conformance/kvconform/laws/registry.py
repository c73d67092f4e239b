"""All laws, in the order of the clauses that state them."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

from kvconform.laws import law
from kvspec.contract import CHAPTERS
from kvspec.reading.clauses import index

for chapter in CHAPTERS:
    if find_spec(f"kvconform.laws.{chapter}"):
        importlib.import_module(f"kvconform.laws.{chapter}")

LAWS = tuple(sorted(law.LAWS, key=lambda x: list(index()).index(x.clause)))
