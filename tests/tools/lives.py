"""Random lives of a real scheduler, each judged by its log: `python -m tools.lives ENGINE [--lives N] [--seed N]`,
run in `tests/`, where the engine is installed.

Seeds follow each other. A life draws all that it is: groups of layers, pages, settings, requests. At the end the
tool says what was lived through. Ends with status 1 if a clause was broken, or a scheduler failed: `--lives 1
--seed N` lives such a life again.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any

from kvconform.steps.log_file import Group, opened
from kvconform.steps.verdict import judged

ENGINES = ("sglang", "transformers", "vllm")
TOLD = {
    "requests": "requests",
    "steps": "steps",
    "rows": "rows written",
    "reads": "rows read",
    "hits": "hits",
    "reused": "tokens reused",
    "evictions": "pages taken again",
    "preemptions": "preemptions",
    "resets": "resets",
    "accepted": "drafts accepted",
    "rejected": "drafts rejected",
    "offloads": "pages to the host",
    "loads": "pages from the host",
}
"""What is counted of all lives, and what it is called."""


def life_of(engine: str) -> Any:
    """Give what makes a life of an engine. One thread is enough: a scheduler's tensors are small."""
    os.environ["OMP_NUM_THREADS"] = "1"
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    return import_module(f"adapters.serving.simulated_{engine}").Life


def seen(of: Group, start: int, n: int) -> int:
    """Count the rows that `n` queries from `start` on see: each its own, and those before it."""
    return sum(at + 1 - of.view.first(at) for at in range(start, start + n))


def reads(log: Path) -> int:
    """Count the rows that all queries of a log see, in all groups of layers."""
    with opened(log) as (header, lines):
        parts = [part for line in lines if line.verb == "step" for part in line.event["step"].values()]
    return sum(seen(group, part["start"], part["n"]) for part in parts for group in header.groups)


def lived(made: Any, steps: int, log: Path) -> tuple[Counter[str], str]:
    """Live so many steps: give what was counted, and what was wrong."""
    wrong = ""
    try:
        made.live(steps)
    except made.notices as e:
        wrong = f"{type(e).__name__}: {e}"
    made.scheduler.step_log.file.close()
    verdict = judged(log)
    return verdict.counts + Counter(lives=1, reads=reads(log)), str(verdict.broken or wrong)


def said(counts: Counter[str], shapes: Counter[str]) -> str:
    """Say what was lived through."""
    lines = [f"{counts['lives']:,} lives: " + "; ".join(f"{n:,} of {shape}" for shape, n in sorted(shapes.items()))]
    lines += [", ".join(f"{counts[name]:,} {what}" for name, what in TOLD.items() if counts[name])]
    return "\n".join([*lines, f"wrong: {counts['wrong']:,}"])


def asked(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the arguments."""
    reader = argparse.ArgumentParser(prog="python -m tools.lives")
    reader.add_argument("engine", choices=ENGINES)
    reader.add_argument("--shape", help="the groups of layers, such as full,window 6; drawn if it is not given")
    for name, usual in (("lives", 100), ("seed", 0), ("steps", 100)):
        reader.add_argument(f"--{name}", type=int, default=usual, help=f"{usual} if it is not given")
    return reader.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Live all lives. Prints where they stand once a minute."""
    how = asked(arguments)
    life, log = life_of(how.engine), Path(tempfile.mkdtemp()) / "steps.jsonl"
    counts, shapes, last = Counter[str](), Counter[str](), monotonic()
    for seed in range(how.seed, how.seed + how.lives):
        made = life(seed, log, how.shape)
        found, wrong = lived(made, how.steps, log)
        counts, shapes[made.shape] = counts + found + Counter(wrong=int(bool(wrong))), shapes[made.shape] + 1
        if wrong:
            print(f"seed {seed}, {made.shape}: {wrong}", flush=True)
        if monotonic() - last > 60:
            last = monotonic()
            print(f"seed {seed}:\n{said(counts, shapes)}", flush=True)
    print(said(counts, shapes))
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
