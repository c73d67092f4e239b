"""Writes again all that is made of the records and texts of the spec: `python -m tools.write_all`.

Frozen covers, walks and vectors are not among it: `python -m tools.freeze_vectors --write` makes these.
"""

from __future__ import annotations

import runpy

TOOLS = ("schemas", "spec_pages", "features_table", "bookkeeping")

if __name__ == "__main__":
    for tool in TOOLS:
        runpy.run_module(f"tools.{tool}", run_name="__main__")
