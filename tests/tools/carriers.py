"""Parcels through real carriers: `python -m tools.carriers [ADAPTER ...]`, run in `tests/`.

Prints a table: adapters in rows, carriers in columns, and how many clauses hold of what arrives: those of MOVE, and
those of ROW, on rows in a form. Then the parcels of two ranks, each a process, meet over gloo (`torch.distributed`)
and part among ranks of other heads: those of one sequence, of layers, and of rows in forms.
What is not installed is named with the library that it lacks. Ends with status 1 if anything that ran is wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir

import numpy as np
from tabulate import tabulate

from kvspec.geometry import Config, Pair
from kvspec.parcels import packed
from support.engines.carriers import CARRIERS, name
from tools.interchange import judged

ADAPTERS = ("reference", "opencl", "cuda-cpu")


def lacks(carrier: str) -> str:
    """Tell which module a carrier lacks; empty if none."""
    config = Config()
    rows = Pair(*(np.zeros(config.shape(kind, 1), np.float16) for kind in "kv"))
    try:
        CARRIERS[carrier]()(packed(config, 1, [0], rows), Path(gettempdir()))
    except ImportError as e:
        return f"lacks {e.name}"
    return ""


def carried(adapter: str, carrier: str) -> tuple[bool, str]:
    """Judge what arrives of an adapter's parcels: whether it conforms, and how many clauses pass."""
    return judged(name(adapter, carrier), "parcels", "forms")


def main(names: Sequence[str]) -> int:
    """Judge all, print the table, and let ranks meet."""
    os.environ["PYTHONPATH"] = os.pathsep.join((str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")))
    chosen, without = tuple(names) or ADAPTERS, {carrier: lacks(carrier) for carrier in CARRIERS}
    results = {(a, c): (True, without[c]) if without[c] else carried(a, c) for a in chosen for c in CARRIERS}
    shown = {key: said if conforms else f"FAIL {said}" for key, (conforms, said) in results.items()}
    print(tabulate([(a, *(shown[a, c] for c in CARRIERS)) for a in chosen], ("through", *CARRIERS)))
    met = [ranks_met(a) for a in chosen]
    return int(not all(conforms for conforms, _ in results.values()) or not all(met))


def ranks_met(adapter: str) -> bool:
    """Let two ranks of an adapter meet over gloo; tell whether nothing was wrong."""
    try:
        from support.engines import gloo_ranks
    except ImportError as e:
        print(f"{adapter}: ranks over gloo: lacks {e.name}")
        return True
    wrong = gloo_ranks.meet(adapter)
    said = "; ".join(wrong) or "every head is back to the bit, and a missing rank is a miss"
    print(f"{adapter}: ranks over gloo: {said}")
    return not wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
