"""Arithmetic that the spec defines to the bit; all caches share it."""
