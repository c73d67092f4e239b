"""Attention on a store in the list model: on one layer, on each sequence of its batch, and captured."""

from __future__ import annotations

from collections.abc import Sequence

from kvref.cite import cite
from kvref.list_model import attention
from kvref.list_model.attention import Asked, KnownRows, apart
from kvref.list_model.attention_bound import Output
from kvref.list_model.batch import BatchingModel, BatchModel
from kvref.list_model.layer import Layer
from kvref.list_model.rows import Added, Out, Queries, Rows
from kvspec.contract import Attention
from kvspec.refusals import attention as refusals
from kvspec.refusals import common


class AttendingModel(BatchingModel):
    """What a store is as well."""

    known: KnownRows
    began: object
    """A new one each time the store is initialised."""

    def meant(self, layer: int | None) -> list[Layer]:
        """The layers that an operation is for."""
        raise NotImplementedError

    def demand_rows(self, keys: Rows, values: Rows, layer: int | None, what: str) -> list[Layer]:
        """The layers meant; refuse rows that do not fit them, or have no room."""
        raise NotImplementedError

    def write(self, serials: Sequence[Sequence[int]], layer: int | None) -> None:
        """Rows behind those there are of each of the layers meant."""
        raise NotImplementedError

    def attend(
        self, queries: Queries, keys: Rows, values: Rows, how: Attention, out: Out = None, of: int | None = None
    ) -> Output | None:
        """Append to one layer, then what each query sees of it."""
        if attention.nothing(queries, keys):
            return attention.no_output(self.known, queries, self.config)
        (layer,) = self.demand_rows(keys, values, -1 if of is None else of, "attend")
        asked = Asked(queries, how, out)
        asked.demand(self.config, 1, keys.n, layer.length + keys.n)
        return self.answer(asked, keys, of, layer, "ATTN-16")

    def answer(self, asked: Asked, keys: Rows, of: int | None, layer: Layer, *clauses: str) -> Output | None:
        """Append, and say what each query sees of the layer; cites `clauses` in addition to those of any attend."""
        turned = self.known.turn(asked.queries, keys, asked.how, layer.length, self.config)
        if keys.n:
            self.write(keys.serials, of)
        sees = asked.sees(1, apart(layer.live()))
        asked.cite(*clauses, *["ROW-16"] * (self.config.form is not None))
        return self.known.output(turned, sees, self.config, asked.how)

    def attend_batch(
        self, queries: Queries, layer: int, splits: int = 1, out: Out = None, sinks: tuple[float, ...] | None = None
    ) -> Output | None:
        """What a layer holds of each sequence."""
        if queries.shape[2] == 0:
            return attention.no_output(self.known, queries, self.config)
        batch = self.there("attend")
        _demand_whole(batch, layer)
        asked = Asked(queries, Attention(splits=splits, sinks=sinks), out)
        asked.demand(self.config, len(batch.all), 1, 0)
        blind: list[list[Added]] = [[{}]]
        sees = [asked.sees(1, apart(one.rows[layer]))[0] if one.length else blind for one in batch.all]
        cite("ATTN-17", *(["ATTN-18", "ATTN-10"] if not all(one.length for one in batch.all) else []))
        asked.cite_common()
        cite(*["ATTN-60"] * (sinks is not None))
        cite(*["ROW-16"] * (self.config.form is not None))
        each = None if queries.array is None else queries.array[:, None]
        found = self.known.stacked(each, [[seen] for seen in sees], self.config, asked.how)
        return found and Output(*(part[:, 0] for part in found))

    def capture_attend(
        self, layer: int, heads: int, splits: int = 1, sinks: tuple[float, ...] | None = None
    ) -> CapturedAttend:
        """An attend of one row, captured."""
        self.meant(layer)
        how = Attention(splits=splits, sinks=sinks)
        attention.demand_how(self.config, heads, splits)
        attention.demand_scoring(how, heads)
        cite("ATTN-20")
        return CapturedAttend(self, layer, heads, how)


def _demand_whole(batch: BatchModel, layer: int) -> None:
    """Refuse a layer that there is not, or that lacks rows of a sequence."""
    if layer not in range(batch.layers):
        raise common.layer("BATCH-9", layer, batch.layers)
    for s, one in enumerate(batch.all):
        if len(one.rows[layer]) < one.length:
            raise refusals.shorter("ATTN-19", s, layer, len(one.rows[layer]), one.length)


class CapturedAttend:
    """A captured attend: its store, its layer, and its arguments."""

    def __init__(self, store: AttendingModel, layer: int, heads: int, how: Attention) -> None:
        self.store, self.began, self.layer, self.heads = store, store.began, layer, heads
        self.how = how

    def replay(self, queries: Queries, keys: Rows, values: Rows) -> Output | None:
        """The attend, on the store it was captured on, unless that was initialised again."""
        store = self.store
        if store.began is not self.began:
            raise refusals.dropped("ATTN-22")
        (layer,) = store.demand_rows(keys, values, self.layer, "replay")
        asked = Asked(queries, self.how)
        asked.demand(store.config, 1, 1, layer.length + 1, self.heads)
        return store.answer(
            asked, keys, self.layer, layer, "ATTN-16", "ATTN-21", *["ATTN-60"] * (self.how.sinks is not None)
        )
