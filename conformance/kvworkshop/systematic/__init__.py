"""Systematic faults: every comparison, offset, constant and statement made wrong, one at a time."""
