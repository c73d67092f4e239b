"""Mutants of the reference that no trace can find, and why."""

from __future__ import annotations

LESS = "the meter counts less than is done, and every clause bounds a count from above"
ROOM = "it costs more, within what the clause on its operation leaves room for"
PLACED = "rows are placed by the suite, before an operation whose cost is counted"
MESSAGE = "it is a number in the message of a refusal"
NOBODY = "nobody comes here: each kind has its own"
PAIR = "there are as many keys as values in a pair"
SHAPE = "a number below 0 or above tells rows of no known shape, which are refused by their shape"
SIZES = "no operation hands over rows of fewer sizes"
WIDE = "beside f64 numbers those of narrower dtypes become f64 by themselves"
NONE_LEFT = "what no queries give has no elements: whether it is the array that was given shows in nothing"
ODD = "1 is odd"
TURNS = "four quarters more are a whole turn more"
NEVER_SO = "what is asked is never so: an error of 0 is asked before, and a sum of 0 has none"
SAME_SUM = "the arithmetic after it comes to the same, and takes longer"
LEFT = "numpy takes any size below 0 for the one that is left"
FIRST = "what is first merged with takes its place; with no tiles there is one query at most"
NO_ARRAY = "there is no mask's array to fit these rows"
NO_ROWS = "there is always room for no rows"

OF_CACHES = {
    "reference/ring._straighten: self.offset <= self.window: LtE swapped": "at offset = W the index is W too: neither "
    "branch moves",
    "reference/ring.can_rewind: 0 <= to < self.offset <= self.window: Lt swapped": "to = offset is allowed by the line's "
    "first half",
    "reference/rows.joined: True became False": PAIR,
    "reference/rows.keep: if (start, stop) != (0, len(self)): always": ROOM,
    "reference/snapshot.__init__: 0 became 1": "it is the ring index of what is no ring, and never asked for",
    "reference/draft.commit: True became False": "there are as many numbers as layers, one was made of each",
    "reference/draft.draft: lost: self._demand_open('draft')": "the mask asked for next refuses under the same clause, and "
    "nothing looks at the rows of such a round",
    "reference/mem.ring: 0 became 1 #1": "a ring has a window",
    "reference/mem.fit: 0 became 1 #2": "no sequence is a single byte long, so one byte that is left over fits none either",
}

OF_STORES = {
    "reference/store.append: 1 became 2": SHAPE,
    "reference/store.append: -1: USub lost": SHAPE,
    "reference/store.append: keys.shape[2] if keys.ndim == 4 else -1: always": SIZES,
    "reference/store._clear: lost: self.zeroed_by = zeroed_by": "which clause is cited for rows of zeros",
    "reference/store.plan: if n > 0: always": NO_ROWS,
    "reference/store.plan: n > 0: Gt swapped": NO_ROWS,
    "reference/page.gather: lost: table, n = ([index(page) for page in table], index(n))": "a trace holds whole numbers alone",
    "reference/page_pool._poison: if self.config.debug: always": "without debug nobody can look at what lies in a free page",
    "reference/bucket.encode: True became False": PAIR,
    "reference/bucket._count: 1 became 2": SHAPE,
    "reference/bucket._count: -1: USub lost": SHAPE,
    "reference/bucket._count: int(rows.shape[3]) if rows.ndim == 5 else -1: always": SIZES,
    "reference/bucket._no_output: np.zeros((*queries.shape[:3], 0, config.v_dim), np.float32) if out is None else out: "
    "always": NONE_LEFT,
    "reference/compiled_graph.write: True became False": PAIR,
    "reference/compiled_graph.__init__: 1 became 2 #2": "no cache is opened without layers",
    "reference/compiled_graph.fits: 1 became 2": SHAPE,
    "reference/compiled_graph.fits: -1: USub lost": SHAPE,
    "reference/compiled_graph.fits: rows.keys.shape[3] if rows.keys.ndim == 5 else -1: always": SIZES,
    "reference/compiled_graph.fits: (rows.keys.shape[3] if rows.keys.ndim == 5 else -1) if n is None else n: always": "no "
    "operation hands over another number of keys than of rows it says",
}

OF_COPIES = {
    "reference/copy._cast: if array.dtype == DTYPES[self.config.dtype]: always": "numpy rounds alike where it is written",
    "reference/copy._demand_rows: all((self._takes(a) for a in source)): any": "keys and values of two dtypes are refused "
    "under the same clause by what is asked next",
    "reference/copy.alias: [source:source + n]: upper + 1": "of the rows handed over only n are taken",
    "reference/copy.copy: [:n]: upper + 1": "of the rows cast only n are written",
    "reference/casts.narrowed: array.astype(np.float64): not rounded": WIDE,
}

OF_THE_METER = {
    **{
        f"reference/meter.{count}": LESS
        for function, line in (
            ("placed", "meter.host_to_device += array.nbytes"),
            ("placed", "meter.allocations += 1"),
            ("allocated", "meter.allocations += 1"),
            ("zeros", "meter.allocations += 1"),
            ("moved", "meter.allocations += 1"),
            ("moved", "meter.device_to_device += array.nbytes"),
            ("fetched", "meter.device_to_host += array.nbytes"),
            ("write", "meter.device_to_device += target.nbytes"),
            ("write", "meter.host_to_device += source.nbytes"),
            ("taken", "meter.host_to_device += array.nbytes"),
            ("handed", "meter.allocations += resident"),
            ("handed", "meter.device_to_host += found.nbytes"),
        )
        for count in (f"{function}: lost: {line}", f"{function}: {line}: operator swapped")
    },
    "reference/meter.placed: 1 became 2": PLACED,
    "reference/meter.zeros: 1 became 2": ROOM,
    "reference/meter.write: if isinstance(source, Resident): always": ROOM,
    "reference/meter.taken: if not isinstance(array, Resident): never": LESS,
    "reference/meter.handed: if not isinstance(out, Resident): never": LESS,
    "reference/meter.handed: np.empty_like(found).view(Resident) if resident else np.empty_like(found): always": LESS,
    "reference/attention.attended: lost: meter.taken(array)": LESS,
    "reference/rope._inside: lost: meter.meter.device_to_device += made.nbytes": LESS,
    "reference/rope._inside: meter.meter.device_to_device += made.nbytes: operator swapped": LESS,
    "reference/rope._inside: if not isinstance(rows, meter.Resident): never": ROOM,
    "reference/rope._inside: lost: return made": ROOM,
    "reference/rope.rotate: meter.moved(made) if isinstance(rows, meter.Resident) else made: never": LESS,
    "reference/rope.rotate: meter.moved(made) if isinstance(rows, meter.Resident) else made: always": ROOM,
}

OF_ROPE = {
    "reference/rope.demand: dims < 1: Lt swapped": ODD,
    "reference/rope.demand: 1 became 2 #3": ODD,
    "reference/rope._turned: a.astype(np.float64): not rounded": WIDE,
    "reference/rope._turned: rows.astype(np.float64): not rounded": WIDE,
    "reference/rope._f32: x.astype(np.float32).astype(np.float64): not rounded": WIDE,
    "reference/rope._rounded: np.where(np.isnan(x), np.nan, x).astype(np.float32): not rounded": "what fma gives are f32 "
    "numbers",
    "reference/rope._rounded: np.where(np.isnan(x), np.nan, x).astype(np.float32).astype(dtype): not rounded": "numpy "
    "rounds alike where it is written",
    "reference/rope_angles.cosine_and_sine: int(turns % 4) % 4: operator swapped": TURNS,
    "reference/rope_angles.cosine_and_sine: turns % 4: operator swapped": TURNS,
    "reference/rope_angles.nearest: x > Decimal(wide): Gt swapped": "no cosine or sine is a number of f64 in the middle of two "
    "of f32, but one of an angle of 0, which are none",
}

OF_ATTENTION = {
    **{f"reference/attention.{f}: lost: raise NotImplementedError": NOBODY for f in ("in_order", "held_after")},
    **{f"reference/attention.{f}: lost: raise NotImplementedError": NOBODY for f in ("demand_rows", "append")},
    **{
        f"reference/attention_store.{f}: lost: raise NotImplementedError": NOBODY for f in ("demand_rows", "append")
    },
    "reference/attention.asked: 0 became 1 #1": "positions 0 and 1 are of the same tile, and only tiles are counted from "
    "here",
    "reference/attention.demand: 1 became 2 #4": MESSAGE,
    "reference/attention.demand: True became False": "both have four sizes: that was asked before",
    "reference/attention.empty: np.zeros(shape, np.float32) if out is None else out: always": NONE_LEFT,
    "reference/attention_store.replay: self.store.lengths_[self.layer] + 1: operator swapped": NO_ARRAY,
    "reference/attention_store.replay: 1 became 2 #1": NO_ARRAY,
    "reference/attention_store.attend_batch: 0 became 1 #1": NO_ARRAY,
    "reference/attention_store._one: 1 became 2": MESSAGE,
    "reference/attention_store._one: -1: USub lost": MESSAGE,
    "reference/attention_store._one: -1 if layer is None else layer: never": MESSAGE,
    "reference/attention_store._one: -1 if layer is None else layer: always": MESSAGE,
    "reference/attention_store._one: layer is None: Is swapped #2": MESSAGE,
    "reference/attention_store._demand_whole: batch.held[s]: index + 1 #2": MESSAGE,
}

OF_STRICT_ATTENTION = {
    "reference/strict_attention.fma: if (total.view(np.int64) & BELOW == TIE).any() or (np.abs(total) < NORMAL).any(): always": "a "
    "sum that is made odd where it need not be rounds to the same",
    "reference/strict_attention.fma: np.abs(total) < NORMAL: Lt swapped": "the least normal number is one of f32, and odd or not "
    "rounds to it",
    "reference/strict_attention._odd: error > 0: Gt swapped": NEVER_SO,
    "reference/strict_attention._odd: total > 0: Gt swapped": NEVER_SO,
    "reference/strict_attention.tree: x[..., 0].astype(np.float64): not rounded": WIDE,
    "reference/strict_attention._difference: -np.inf: USub lost #2": "minus infinity less a finite maximum is so of itself, and of "
    "parts whose maximum it is nothing is used; where a score is plus infinity, all come to 0 / 0 instead of to NaN",
    "reference/strict_attention.merge: if (one.m == -np.inf).all(): never": SAME_SUM,
    "reference/strict_attention.merge: lost: return Part(other.m, np.where(gone, 0.0, other.l), np.where(gone[..., None], 0.0, other.a + 0.0))": SAME_SUM,
    "reference/strict_attention.attend: 1 became 2 #1": "whoever attends says how many splits: what stands there for others is not "
    "asked for",
    "reference/strict_attention._empty: 1 became 2 #1": FIRST,
    "reference/strict_attention._empty: [:-1]: upper - 1": FIRST,
    "reference/strict_attention._splits: tile[None] < end[:, None]: Lt swapped": "a tile behind the last is hidden, and comes to "
    "nothing",
    "reference/strict_attention._splits: 1 became 2 #2": "any number below 0 says that it belongs to no split",
    "reference/strict_attention._splits: -1: USub lost": "a tile that a query has nothing in comes to nothing in whatever split",
    "reference/strict_attention._tiles: 1 became 2 #4": LEFT,
    "reference/strict_attention._tiled: 1 became 2": LEFT,
    "reference/strict_attention._tiled: -(before + rows) // TILE: operator swapped": "more tiles than there are rows for come to "
    "nothing",
    "reference/strict_attention._scores: if added.any(): always": "where nothing is added the arithmetic adds 0, and hides nothing",
    "reference/strict_attention._scores: keys.astype(np.float64): not rounded": WIDE,
    "reference/strict_attention._scores: queries.astype(np.float64): not rounded": WIDE,
    "reference/strict_attention._weighted: more if every[j] else np.where(seen[..., j, None], more, a): never": "where every query "
    "sees a row both are the same",
}

ARGUED: dict[str, str] = {
    **OF_CACHES,
    **OF_STORES,
    **OF_COPIES,
    **OF_THE_METER,
    **OF_ROPE,
    **OF_ATTENTION,
    **OF_STRICT_ATTENTION,
}
"""Of each, by its id, the reason."""
