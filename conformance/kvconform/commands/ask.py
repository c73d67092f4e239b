"""`kvconform ask ENGINE DIR`: asks a whole engine that loads a probe, and tells what its queries saw."""

from __future__ import annotations

from argparse import Namespace

from kvadapters.probe.asked import MOST_TOKENS, asked
from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.engines import loaded
from kvadapters.probe.reader.precision import Precision


def main(options: Namespace) -> int:
    """Print the verdict; return 1 if something is wrong. Raises BadInput or CannotRun."""
    probe, precision = Probe.load(options.folder), Precision(options.dtype, options.rows)
    model = loaded(options.engine, options.folder, options.dtype)
    verdict = asked(probe, model, precision, options.seed, MOST_TOKENS)
    print(verdict.told())
    return int(bool(verdict.failures))
