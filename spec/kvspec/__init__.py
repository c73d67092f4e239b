"""The specification: its chapters, and its vocabulary as code (geometry, traces, rows, contract, wire)."""

SPEC_VERSION = "2.0"
"""Version of the chapters. A clause never changes its meaning under its id; see spec/README.md."""
