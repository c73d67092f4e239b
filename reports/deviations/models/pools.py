"""What pools of pages do otherwise."""

from __future__ import annotations

from kvref.list_model.page import Page, PagedSequence, PoolModel
from kvref.list_model.rows import Rows
from kvref.list_model.unsaid import may


class CountsRefusedRows(PoolModel):
    """TVM: a pass that finds too few pages has taken those that there were, and counts its rows. The call for
    debugging then reads beyond the pages."""

    owed = "any crash"

    def _demand(self, keys: Rows, values: Rows, sequence: int) -> PagedSequence:
        with may("refused crash", "PAGE-13"):
            return super()._demand(keys, values, sequence)


class HalfForked(PoolModel):
    """TVM: a fork, or a truncation of shared rows, that finds no page has divided the rows of the other."""

    def _own(self, pages: list[Page], n: int) -> list[Page]:
        with may("refused", "PAGE-21"):
            return super()._own(pages, n)
