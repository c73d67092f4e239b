"""Hostile adapters over the reference's growing cache: each does what its docstring says, mostly on an append.

Used as `hostile.adapters:Name`.
"""

from hostile.adapters.deaths import *  # noqa: F403
from hostile.adapters.errors import *  # noqa: F403
from hostile.adapters.lies import *  # noqa: F403
