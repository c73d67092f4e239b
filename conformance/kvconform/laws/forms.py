"""The law of ROW: a form changes nothing that a cache shows, but for the step of each element."""

from __future__ import annotations

from hypothesis import strategies as st

from kvconform.generate.strategies.forms import FORMS, fitting
from kvconform.laws import caches
from kvconform.laws.law import Sides, register
from kvspec.geometry import Config


@register("ROW-17", needs=("forms",), kinds=("growing", "ring"), compare=caches.difference)
def formed(draw: st.DrawFn, config: Config) -> Sides:
    """In a form; or plain, with rows of the same names."""
    before, offset = caches.start(draw, least=1)
    config = fitting(config, draw(st.sampled_from(FORMS)))
    window = config.window or offset
    back = [f"rewind {draw(st.integers(0, offset))}"] if offset <= window else []
    ops = [*before, *draw(st.sampled_from(([], back, ["free", "append 2"])))]
    return Sides(caches.trace(config, *ops), caches.trace(config.changed(form=None), *ops))
