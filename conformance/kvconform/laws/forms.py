"""The law of ROW: a form changes nothing that a cache shows, but for the step of each element."""

from __future__ import annotations

from hypothesis import strategies as st

from kvconform.generate.strategies.forms import FORMS, fitting
from kvconform.laws import attention, caches
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


@register("ROW-23", needs=("forms",), kinds=("growing", "ring"), compare=caches.difference)
def latent(draw: st.DrawFn, config: Config) -> Sides:
    """Latent rows; or keys with copies of their beginnings, by the same operations."""
    config = fitting(config, "latent")
    before, offset = caches.start(draw, least=1)
    window = config.window or offset
    back = [f"rewind {draw(st.integers(0, offset))}"] if offset <= window else []
    more = [[], back, [f"append {draw(st.integers(1, 3))} fill=copies"], ["free", "append 2 fill=copies"]]
    ops = [*before, *draw(st.sampled_from(more))]
    return Sides(caches.trace(config, *ops), caches.trace(config.changed(form=None), *ops))


@register("ROW-24", needs=("forms", "attention"), kinds=("growing", "ring"), compare=attention.difference)
def attended(draw: st.DrawFn, config: Config) -> Sides:
    """Attention over latent rows; or over keys with copies of their beginnings."""
    config = fitting(config, "latent")
    before, heads = draw(st.sampled_from((0, 1, 31, 33))), config.kv_heads * draw(st.sampled_from((1, 2, 8)))
    start, rows = [f"append {before} fill=copies"] if before else [], draw(st.integers(1, 4))
    ops = [*start, f"attend {rows} fill=copies heads={heads} splits={draw(st.integers(1, 2))}"]
    return Sides(*(caches.plain(config.changed(form=form), *ops) for form in ("latent", None)))


@register("ROW-30", needs=("forms",), kinds=("growing",), compare=caches.difference)
def whole_window(draw: st.DrawFn, config: Config) -> Sides:
    """In a form, beside a residual window of all rows; or plain, with the same rows."""
    config = fitting(config, draw(st.sampled_from(FORMS)))
    fill = draw(st.sampled_from(("fine", "fine", "bits", "edges")))
    before, back, more = (draw(st.integers(low, 4)) for low in (1, 0, 1))
    ops = [f"append {before} fill={fill}", f"rewind {min(back, before)}", f"append {more} fill={fill}", "view"]
    return Sides(*(caches.plain(config.changed(**way), *ops) for way in ({"residual": 8}, {"form": None})))
