"""Generators of traces: strategies, covers; shrinking; fitting traces to an adapter's limits."""
