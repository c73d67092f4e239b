"""How much of each bound is used: by good implementations, and by inputs that are made to use it up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvspec.geometry import Array


class Used(NamedTuple):
    """The worst element that was seen: its share of its bound, how far it is off, and whose it is."""

    share: float = 0.0
    off: float = 0.0
    by: str = "nobody"


def used(by: str, found: Array, wanted: Array, bound: Array) -> Used:
    """The element that uses most of its bound. One that must be right to the bit and is not uses infinitely much;
    where nothing is said, nothing is used."""
    with np.errstate(all="ignore"):
        off = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
        shares = np.where(np.isfinite(bound), np.where(off == 0, 0.0, off / bound), 0.0)
    shares = np.where(
        np.isnan(shares) & ~np.isnan(wanted.astype(np.float64)), np.inf, np.nan_to_num(shares, nan=0.0)
    )
    at = np.unravel_index(int(shares.argmax()), shares.shape)
    return Used(float(shares[at]), float(off[at]), by)
