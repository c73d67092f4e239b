"""All triggers."""

from __future__ import annotations

from hostile.attacks.triggers.combinations import combinations
from hostile.attacks.triggers.contents import contents
from hostile.attacks.triggers.counts import counts, observations
from hostile.attacks.triggers.forms import in_forms
from hostile.attacks.triggers.orders import orders
from hostile.attacks.triggers.places import places
from hostile.attacks.triggers.sizes import sizes
from hostile.attacks.triggers.trigger import Trigger
from hostile.attacks.triggers.two_sizes import two_sizes

SORTS = ("size", "two sizes", "place", "order", "content", "count", "observation", "combination")


def triggers() -> list[Trigger]:
    """All of them."""
    return [
        *(*sizes(), *two_sizes(), *places(), *orders()),
        *(*contents(), *counts(), *observations(), *combinations(), *in_forms()),
    ]
