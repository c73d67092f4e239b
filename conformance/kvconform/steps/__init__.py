"""Judges a serving engine by the log of its steps: who wrote each slot, and what each query would have seen."""
