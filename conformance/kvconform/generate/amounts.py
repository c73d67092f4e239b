"""How many drawn traces are judged: the same number in a run of an adapter and in the hunt for a mutant."""

from __future__ import annotations

TRACES, SEED = 24, 0
"""Traces that each exploration draws, and the seed of all drawing, by default."""

QUICK_TRACES, QUICK_COVERS = 2, 5
"""Traces that each exploration draws in a quick run, and cover traces of each chapter that it judges."""

CLAUSE_TRACES, CLAUSE_COVERS = 12, 40
"""The same in a run on single clauses; of cover traces those that concern them."""

FEW = 10
"""A run is one of few traces if it draws fewer than this for each exploration."""

BLIND, ALIKE, INPUTS, GEOMETRY = 2, 3, 4, 4
"""One explored trace in this many is judged again: unobserved, with rows that are alike, with inputs in other
forms, and at the geometry of a released model."""

MOST_VISIBLE = 8193
"""The largest boundary that is judged at level visible where rows are read: the list model goes from row to row."""
