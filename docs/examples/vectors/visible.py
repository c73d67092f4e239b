"""Level visible: an engine is compared by the rows that each query sees, wherever they lie.

`Visible(engine)` wraps an engine of growing, bounded, ring and sink caches whose answers hold history and mask. It
answers only with what level visible compares: the result, the offset, and as `sees` the rows of each query, which
are numbered as appended.
"""

import struct

KEPT = ("result", "offset", "can", "drafted")
"""The values that are compared as they are. Level visible leaves out the clause of a refusal, other lengths, and
slots."""

UNKNOWN = -1
"""The number of a row that nobody appended."""


class Visible:
    """An engine, and what its queries see."""

    def __init__(self, engine):
        self.engine = engine
        self.numbers = {}  # the number of each row, by its bytes: rows count as they are taken
        self.histories = {}  # of each cache, or round: the numbers of the rows, and how many queries there are

    def __call__(self, op, given):
        """Do one operation, as an engine does."""
        seen = self.engine(op, given)
        if "rows.k" in given and seen["result"] == "ok":
            for row in _rows(given["rows.k"], given["rows.v"]):
                self.numbers[row] = len(self.numbers)
        cache = op.get("cache", "A"), op.get("round", op.get("name"))
        if seen.get("history.k"):
            rows = [self.numbers.get(row, UNKNOWN) for row in _rows(seen["history.k"], seen["history.v"])]
            self.histories[cache] = rows, op["n"]
        kept = {name: seen[name] for name in KEPT if name in seen} | _view(seen)
        return kept | (_sees(seen["mask"], *self.histories[cache]) if "mask" in seen else {})


def _view(seen):  # rows in the order of positions; where there are none, nobody owes more than that
    empty = {part: seen[part] is None or 0 in seen[part][1] for part in ("view.k", "view.v") if part in seen}
    return {part: None if none else seen[part] for part, none in empty.items() if not none or seen["offset"]}


def _rows(keys, values):  # the bytes of each row, over all sequences and heads, of keys and of values
    parts = []
    for _, (batch, heads, n, _), data in (keys, values):
        width = len(data) // max(1, batch * heads * n)
        parts.append([[data[(h * n + i) * width :][:width] for h in range(batch * heads)] for i in range(n)])
    return [b"".join(key + value) for key, value in zip(*parts, strict=True)]


def _sees(mask, rows, queries):  # the rows of each query through a mask; no mask hides nothing
    if mask is None:
        return {"sees": [[[sorted(rows)] * queries]]}
    dtype, (batch, heads, queries, columns), data = mask
    if columns not in (1, len(rows)):
        return {"sees": f"a mask of {columns} columns for {len(rows)} rows"}
    cells = [x for (x,) in struct.iter_unpack("<f" if dtype == "f32" else "?", data)]
    each = [sorted(_seen(cells[i * columns :][:columns], rows, dtype)) for i in range(batch * heads * queries)]
    whole = [[each[(b * heads + h) * queries :][:queries] for h in range(heads)] for b in range(batch)]
    whole = _one_for_all([_one_for_all(sequence) for sequence in whole])
    serials, scores = (
        [[[[pair[i] for pair in query] for query in head] for head in heads] for heads in whole] for i in (0, 1)
    )
    scored = any(score for heads in scores for head in heads for query in head for score in query)
    return {"sees": serials} | ({"scores": scores} if scored else {})


def _seen(cells, rows, dtype):  # rows that are not hidden, each with its score
    hidden, cells = (float("-inf") if dtype == "f32" else False), cells * len(rows) if len(cells) == 1 else cells
    return [(row, cell if dtype == "f32" else 0) for row, cell in zip(rows, cells, strict=True) if cell != hidden]


def _one_for_all(each):  # one sequence or head stands for all that are alike
    return each[:1] if all(other == each[0] for other in each) else each
