"""What can be found in the pages of a pool. Rows are known by the salt and by all that they depend on, as it is: no
hash stands for it that could collide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from weakref import WeakValueDictionary

from kvspec.contract import Request

Row = tuple[int, tuple[str, ...]]
"""What a row adds to those before it: its token, and the items at it."""


def rows_of(request: Request, begin: int, end: int) -> list[Row]:
    """Give what the rows of these positions add."""
    return [(request.tokens[p], tuple(name for name, at in request.media if at == p)) for p in range(begin, end)]


class Text:
    """What the rows of whole pages depend on, from the first on. There is one such object for each text, as long as
    anybody has it. `begin` are the pages that begin behind it, and `end` those that end with it."""

    __slots__ = ("__weakref__", "before", "begin", "end", "longer")

    def __init__(self, before: Text | None = None) -> None:
        self.before, self.begin, self.end = before, set[int](), set[int]()
        self.longer = WeakValueDictionary[tuple[Row, ...], Text]()

    def then(self, rows: Sequence[Row]) -> Text:
        """Give the text with a page of rows behind it."""
        key = tuple(rows)
        found = self.longer.get(key)
        if found is None:
            found = self.longer[key] = Text(self)
        return found


class Known:
    """`rows[page]` are the first rows of a page, which can be found. They stand behind the text `behind[page]`. If
    they fill the page, the text `whole[page]` ends with them."""

    def __init__(self, pages: int, size: int) -> None:
        self.size = size
        self.rows: list[list[Row]] = [[] for _ in range(pages)]
        self.behind: list[Text | None] = [None] * pages
        self.whole: list[Text | None] = [None] * pages
        self._roots = WeakValueDictionary[tuple[str, str], Text]()

    def root(self, request: Request) -> Text:
        """Give the text before all tokens of a request."""
        key = request.salt, request.adapter
        found = self._roots.get(key)
        if found is None:
            found = self._roots[key] = Text()
        return found

    def add(self, page: int, behind: Text, rows: Sequence[Row]) -> None:
        """Have more rows found in a page, which stands behind a text."""
        self.behind[page] = behind
        behind.begin.add(page)
        self.rows[page] += rows
        if len(self.rows[page]) == self.size:
            whole = self.whole[page] = behind.then(self.rows[page])
            whole.end.add(page)

    def cut(self, page: int, n: int) -> None:
        """Have only the first n rows found, fewer than fill the page."""
        behind, whole = self.behind[page], self.whole[page]
        if whole is not None:
            whole.end.discard(page)
        if behind is not None and n == 0:
            behind.begin.discard(page)
            self.behind[page] = None
        self.whole[page] = None
        del self.rows[page][n:]

    def copy(self, page: int, to: int, n: int) -> None:
        """Have the first n rows found in another page too."""
        behind = self.behind[page]
        if behind is not None:
            self.add(to, behind, self.rows[page][:n])

    def pages(self, text: Text, wanted: Sequence[Row], parts: bool) -> Iterator[tuple[int, int]]:
        """Give pages behind a text that begin with rows that are wanted, and with how many: those that have a whole
        page of them, or else, with `parts`, all."""
        whole = text.longer.get(tuple(wanted))
        if whole is not None and whole.end:
            yield from ((page, self.size) for page in whole.end)
        elif parts:
            yield from ((page, _common(self.rows[page], wanted)) for page in text.begin)


def _common(rows: Sequence[Row], wanted: Sequence[Row]) -> int:
    """Count the first rows that are equal."""
    equal = (a == b for a, b in zip(rows, wanted, strict=False))
    return next((i for i, same in enumerate(equal) if not same), min(len(rows), len(wanted)))
