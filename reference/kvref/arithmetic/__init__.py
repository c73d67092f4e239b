"""Arithmetic that the spec defines to the bit, and no cache's own."""
