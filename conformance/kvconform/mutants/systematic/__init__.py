"""Systematic faults: every comparison, offset, constant and statement made wrong in turn."""
