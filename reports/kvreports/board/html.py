"""The board as one HTML page."""

from __future__ import annotations

from kvreports import page
from kvreports.board.engines import Board, Deviation
from kvreports.drawing.svg import draw_svg
from kvreports.safe_text import Html

STYLES, SCRIPTS = ("page.css", "drawing.css"), ("theme.js",)


def render(board: Board) -> str:
    """The page."""
    return page.render("board.html.j2", STYLES, SCRIPTS, board=board, drawing=drawing)


def drawing(deviation: Deviation) -> Html:
    """The picture of its shortest trace."""
    title = f"The trace {deviation.failure.words[:200]}, drawn step by step"
    return draw_svg(deviation.failure.steps, title, standalone=False)
