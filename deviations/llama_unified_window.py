"""llama-cpp-python 0.3.36: a batch of several sequences that share the few cells of a window, longer than one
evaluation, loses rows that its first queries need. Wrong result.

Shortest trace: ring batch=3 window=3: append 3; append 4 (RING-1), where evaluations have 8 rows. Here
window=72, evaluations of 40 rows, three sequences that are fed side by side. Before it evaluates, `prepare`
tries to place the whole batch, one evaluation after the other. To place a later one it uses cells of rows that
an earlier one has moved out of the window, and drops all older rows of that sequence. It then puts back the
cells that it wrote to, and not those that it dropped. The logits are compared with those of each sequence
alone, in a context with all cells. Status 0 if it still reproduces.
"""

import sys

import numpy as np
from float64 import report
from tinymodel import WORDS, decode, load, logits, open_context

WINDOW, SEQUENCES, ROWS, LENGTH = 72, 3, 40, 420
model = load(WINDOW)


def prompts(start: int, rows: int) -> list[list[int]]:
    """The tokens of each sequence from a position on."""
    return [[(7 * i + i * i + 11 * s) % WORDS for i in range(start, start + rows)] for s in range(SEQUENCES)]


def furthest(chunk: int, whole: bool) -> float:
    """How far logits are off at the end of chunks, of any sequence, from those of the sequence alone."""
    together = open_context(model, whole, SEQUENCES, ROWS)
    alone = [open_context(model, True) for _ in range(SEQUENCES)]
    off = 0.0
    for start in range(0, LENGTH - chunk + 1, chunk):
        batch = prompts(start, chunk)
        assert decode(together, *batch) == 0
        for sequence, context in enumerate(alone):
            assert decode(context, batch[sequence]) == 0
            row = (sequence + 1) * chunk - 1
            off = max(off, float(np.abs(logits(together, row) - logits(context)).max()))
    return off


SHORT, LONG = 13, 30
"""Rows of a chunk: those of all sequences fit into one evaluation, or do not."""

found = {(chunk, whole): furthest(chunk, whole) for chunk in (SHORT, LONG) for whole in (True, False)}
for (chunk, whole), off in found.items():
    print(f"chunks of {chunk} rows, {'all' if whole else 'few'} cells: logits off by {off:.3g}", file=sys.stderr)
right = all(found[n, whole] < 1e-2 for n, whole in ((SHORT, True), (SHORT, False), (LONG, True)))
text = f"chunks that take several evaluations lose rows: logits off by {found[LONG, False]:.3g}"
sys.exit(report(right and found[LONG, False] > 1e-1, text))
