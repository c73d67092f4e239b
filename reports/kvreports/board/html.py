"""The board as one HTML page."""

from __future__ import annotations

from kvreports import inline_markdown, page
from kvreports.board import asked, served
from kvreports.board.engines import Board
from kvreports.board.trend import trend
from kvreports.drawing.packed import packed
from kvreports.drawing.svg import draw_svg
from kvreports.run import standing
from kvreports.safe_text import Html
from kvspec.records.run import Failure

STYLES = ("page.css", "drawing.css", "player.css", "board.css")
SCRIPTS = ("theme.js", "board.js", "player.js")


def render(board: Board) -> str:
    """The page."""
    return page.render(
        "board.html.j2",
        STYLES,
        SCRIPTS,
        board=board,
        trend=trend,
        traced=traced,
        kinds=standing.KINDS,
        meaning=standing.WORDS,
        served=served,
        asked=asked,
        said=inline_markdown.html,
        no_page=lambda clause: "",
        to_record=lambda anchor, chapter="": f"#{anchor}-{chapter}" if chapter else f"#{anchor}",
    )


def traced(failure: Failure, of: str = "") -> tuple[Html, str]:
    """The picture of a failure's shortest trace, and the trace in the form that a link carries."""
    title = f"{of}: {failure.words}" if of else failure.words
    picture = draw_svg(failure.steps, f"The trace {failure.words[:200]}, drawn step by step", standalone=False)
    return picture, packed(failure.steps, str(failure.trace.get("kind", "")), title)
