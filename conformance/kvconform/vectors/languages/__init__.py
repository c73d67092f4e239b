"""Frozen traces for tests in other languages: a header of C, a package for npm, a crate. Each has its own reader.

All three have the same traces (`told`). A row is told by its number: the reader says what each query must see.
"""
