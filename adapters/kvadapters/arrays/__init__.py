"""Arrays of libraries, from numpy and back: `to_engine` and `from_engine` of each."""

LIBRARIES = ("mlx", "torch")
"""The libraries, each a module of this package, which imports the library."""
