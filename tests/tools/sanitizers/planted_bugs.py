"""Bugs that each tool must catch, and name by the kind given here: changes to the text of the kernels."""

from __future__ import annotations

from tools.sanitizers.fast_bugs import FAST
from tools.sanitizers.plain_bugs import PLAIN

BUGS = {**PLAIN, **FAST}
"""By check: what each must catch."""
