"""ROW: every operation from every state of small caches in a form. It also has traces of the chapters on caches, in
any form, some with the widths and heads of released models."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies import cache_moves, caches, growing, mem, page, ring
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan
from kvspec import notation
from kvspec.chapters import CHAPTERS
from kvspec.forms import parsed
from kvspec.geometry import Config
from kvspec.operations.table import ARGUMENTS, RUN, Operation, argument, caches_with, chapters_of
from kvspec.registry import fields_of, opened
from kvspec.session.driver import Session
from kvspec.trace import Trace

SMALL = (
    Trace("growing", Config(step=2, form="int4/2,int8/3")),
    Trace("ring", Config(window=2, form="e4m3/h:0.5:2,int8a/3")),
    Trace("page", Config(page_size=2, pages=2, form="int8/2,e4m3/1")),
    Trace("growing", Config(step=2, form="latent")),
    Trace("ring", Config(window=2, form="int8/4,latent")),
    Trace("page", Config(page_size=2, pages=2, form="latent")),
    Trace("growing", Config(step=2, form="int4/2,int8/3", residual=2)),
)
"""The covered caches."""

BOUND = 4
"""Most rows of the covered growing cache."""

FORMS = (
    *("int8/2", "int8/1", "int4/4", "int4/1", "int8a/4", "int4a/8", "e4m3/1", "e5m2/4", "e4m3/t", "e5m2/t:0.001"),
    *("e4m3/h:0.5:2:0.125", "e4m3/t:0.5,e4m3/t:2", "int8/4,int4/8", "int8/8,e5m2/1", "q8_0", "q4_0", "q8_0,q4_0"),
    *("int8/32", "int4a/32", "int4/64,int8a/16", "int4/3,int4a/5", "int4/7"),
    *("int8/t:0.5", "int4/h:0.5:2,int8/t:0.02", "int8/c:0.5:2:0.125", "int4/c:1:4:0.5:2:0.25", "e4m3/c:0.5:2"),
    *("latent", "int8/4,latent", "int4/1,latent", "e4m3/h:0.5:2,latent", "int8a/8,latent", "e4m3/1,latent"),
)
"""Forms of explored caches, the simplest first."""

MISFITS = (
    *("int8/4096", "int8/2,int4/4096", "e4m3/t:0", "int8a/t", "int8/c:1:0", "e5m2/h:1:inf", "latent v_dim=77"),
    "",
)
"""Forms that no cache can have; "" stands for no attempt."""

WIDE = ((1, 576, 512), (1, 576, 512), (8, 128, 128), (32, 128, 128), (32, 64, 64), (16, 192, 128))
"""Heads and widths of released models."""

LARGE = (
    *("int8/64", "int8/1", "int4a/64", "q8_0", "q4_0"),
    *("q8_0,q4_0", "e4m3/t:0.05", "e4m3/1", "e5m2/32", "int4/32"),
    *("int8/t:0.03", "int8/c:0.03:0.05:0.04"),
    *("latent", "e4m3/t:0.05,latent", "int8/64,latent", "int8/1,latent", "q8_0,latent"),
)
"""Forms of their caches."""

WINDOWS = (None, None, 1, 2, 3, 5)
"""Residual windows of explored growing caches; of real ones too, and 32 and 128."""

OPERATIONS = ("append 1", "append 2", "append 1 fill=fine", "append 3 fill=bits", "view", "rewind 1", "free")
"""What happens to them."""

ON_PAGES = (
    *("append 1", "append 15", "append 2 fill=fine", "append 1 sequence=1", "append 3 fill=bits sequence=1"),
    *("fork 0 16", "fork 0 15", "fork 0 1", "truncate 0 16", "truncate 0 3", "truncate 1 1", "drop 1"),
)
"""What happens to pools of their pages, of 16 rows; what a sequence cannot do is refused."""

ATTENDED = (
    *("attend 1", "attend 15", "attend 1 sequence=1") * 2,
    "attend 2 sequence=1 heads=64",
    "attend 1 splits=2",
)
"""Attends on pools of such pages."""

OVER = (
    *("growing", "ring", "bounded", "sink", "layers", "page", "store", "batch", "ragged", "copy", "bucket"),
    *("draft", "attention", "rope"),
)
"""The chapters whose traces are judged in a form."""

ROUNDED = ("fine", "bits", "edges", "hay")
"""Fills of rows that a form rounds."""

BESIDE = {"batch": ("store",)}
"""The chapters that these take beside their own."""


def moves(session: Session) -> list[str]:
    """Give the cache's moves; appends of rows that are rounded, and snapshots that bring them back."""
    cache = session.caches["A"]
    if cache.kind == "page":
        return _on_pages(cache)
    base = growing.moves(session, BOUND, 3) if cache.kind == "growing" else ring.moves(session)
    room = cache.kind != "growing" or cache.offset < BOUND
    rounded = ["append 1 fill=fine", "append 1 fill=bits"] if room else []
    return [*base, *rounded, f"snapshot s; rewind -1; free; restore s {cache.offset}"]


def _on_pages(pages: Any) -> list[str]:
    """Give moves of a sequence and of one that is forked from it: in PAGE's own covers others come and go."""
    known = ("append", "truncate", "fork") if pages.in_use else ("admit",)
    rounded = [f"append 1 sequence={number} fill=fine" for number in pages.in_use]
    return [*(move for move in page.leading(2, pages) if move.startswith(known)), *rounded]


def continuations(session: Session) -> list[str]:
    """Give appends that show which rows there are, and move them again."""
    if session.caches["A"].kind == "page":
        return page.continuations(session)
    return ["append 1; append 1 fill=fine; view", "append 2 fill=fine; append 1; view"]


def plans() -> list[Plan]:
    """Plan each of the small caches."""
    looks = {"page": "scribble"}
    return [
        plan(
            f"forms {t.kind} {t.config.form}{_window(t.config)}",
            t,
            moves,
            continuations,
            look=looks.get(t.kind, "view"),
        )
        for t in SMALL
    ]


def _window(config: Config) -> str:
    """The residual window, in words, if there is one."""
    return "" if config.residual is None else f" residual {config.residual}"


def in_form(trace: Trace, text: str, rounded: Callable[[int], bool] = lambda number: False) -> Trace:
    """The same trace in a form, its rows as much wider as the form needs. `rounded`: which of the operations,
    by number, get rows that the form rounds. What can have no form keeps its rows."""
    if not can_have_form(trace):
        return trace
    config = fitting(trace.config, text)
    ops = (_rounded(op) if rounded(number) else op for number, op in enumerate(trace.ops))
    return Trace(trace.kind, config, tuple(ops))


def can_have_form(trace: Trace) -> bool:
    """Tell whether the cache of a trace can be in a form: its kind can, and none of its layers is a state."""
    return "form" in fields_of(trace.kind) and "state" not in (trace.config.of or "").split(",")


def exact(trace: Trace) -> Trace:
    """The same trace with rows that its form keeps to the bit in place of those that it rounds: there a scale of
    another row shows best."""
    ops = ({**op, "fill": "legible"} if op.get("fill") in ROUNDED else op for op in trace.ops)
    return Trace(trace.kind, trace.config, tuple(ops))


def fitting(config: Config, text: str) -> Config:
    """Give a config this form, and widths that it fits: multiples of its group, wide enough to name many rows."""
    keys, values = parsed(text)
    k_dim, v_dim = keys.wide(max(config.k_dim, 6)), values.wide(max(config.v_dim, 6))
    return config.changed(form=text, k_dim=k_dim, v_dim=min(k_dim, v_dim) if values.latent else v_dim)


def _rounded(op: Operation) -> Operation:
    if op["op"] == RUN.name or "fill" not in ARGUMENTS[op["op"]] or argument(op, "fill") != "legible":
        return op
    return {**op, "fill": "fine"}


@st.composite
def formed(draw: st.DrawFn, over: Callable[[], Any]) -> Trace:
    """Draw a trace of another chapter, and a form for it; some of its rows are rounded, or none. At the end a cache
    is opened beside it in a form that does not fit."""
    text, share = draw(st.sampled_from(FORMS)), draw(st.sampled_from((0, 0, 2, 3)))
    misfit = draw(st.sampled_from(MISFITS))
    plain = over().filter(can_have_form)
    found = in_form(draw(plain), text, lambda number: share > 0 and number % share == 0)
    if "residual" in fields_of(found.kind):
        window = draw(st.sampled_from(WINDOWS))
        found = Trace(found.kind, found.config.changed(residual=window), found.ops)
    beside = notation.operations(f"open Z form={misfit}") if misfit else ()
    shown = found if share else exact(found)
    return Trace(shown.kind, shown.config, (*shown.ops, *beside))


@st.composite
def real(draw: st.DrawFn) -> Trace:
    """Draw a few operations on a cache of the heads and widths of a released model."""
    heads, k_dim, v_dim = draw(st.sampled_from(WIDE))
    window = draw(st.sampled_from((None, 3, 4)))
    shape = Config(kv_heads=heads, k_dim=k_dim, v_dim=v_dim, window=window, step=draw(st.sampled_from((2, 256))))
    dtype, form = draw(st.sampled_from(("f16", "bf16", "f32"))), draw(st.sampled_from(LARGE))
    texts = [draw(st.sampled_from(OPERATIONS)) for _ in range(draw(st.integers(2, 7)))]
    config = fitting(shape.changed(dtype=dtype), form)
    if not window:
        config = config.changed(residual=draw(st.sampled_from((*WINDOWS, 32, 128))))
    return _trace("ring" if window else "growing", config, texts)


@st.composite
def real_pages(draw: st.DrawFn, more: tuple[str, ...] = ()) -> Trace:
    """Draw a few operations, some of those in `more`, on a pool of pages of the heads and widths of a released
    model."""
    heads, k_dim, v_dim = draw(st.sampled_from(WIDE))
    dtype, form = draw(st.sampled_from(("f16", "bf16"))), draw(st.sampled_from(LARGE))
    shape = Config(kv_heads=heads, k_dim=k_dim, v_dim=v_dim, dtype=dtype, page_size=16, pages=4)
    texts = [draw(st.sampled_from((*more, *ON_PAGES))) for _ in range(draw(st.integers(2, 6)))]
    return _trace("page", fitting(shape, form), ["admit", "append 16", *texts])


def _trace(kind: str, config: Config, texts: list[str]) -> Trace:
    return Trace(kind, config, tuple(op for text in texts for op in notation.operations(text)))


AT_SIZES = ("int4/4", "int8/1", "q8_0,q4_0", "e5m2/4", "e4m3/t:0.5", "int8/8,e5m2/1", "latent")
"""One form of each sort, for caches of many heads and of many sequences."""

SIZES = ({"kv_heads": 64}, {"batch": 33})

LIVED = (
    "append 3; rewind 99999; append 1 fill=random; rewind 3; append 2; attend 1; snapshot s; append 1; "
    "restore s 5; view; free; append 2; view"
)
"""What happens to them: the first rewind is refused, and a row behind it is read."""


def at_sizes(kind: str, chapters: Collection[str] = CHAPTERS) -> list[Trace]:
    """Give the life `LIVED` of a cache in each sort of form, with many heads and with many sequences.

    Operations that need other chapters than these are left out.
    """
    lived = tuple(op for op in notation.operations(LIVED) if set(chapters_of(op)) <= {*chapters})
    shapes = [fitting(Config(**opened(kind).tried, **sizes), form) for form in AT_SIZES for sizes in SIZES]
    return [Trace(kind, shape, lived) for shape in shapes]


attended_pages = partial(page.explored, more=("attend",) * 5)
"""Draws attends over pages."""

EXPLORATIONS = (
    *(Exploration(chapter, (*BESIDE.get(chapter, ()), chapter), formed, over=chapter) for chapter in OVER),
    *(
        Exploration(
            f"parcels/{kind}",
            (kind, "parcels"),
            partial(formed, partial(caches.traces, kind, cache_moves.WITH_PARCELS)),
        )
        for kind in caches_with("unpack")
    ),
    *(
        Exploration(
            f"mem/{kind}",
            (kind, "mem"),
            partial(formed, partial(mem.with_plans, partial(caches.traces, kind, cache_moves.BASE))),
        )
        for kind in caches_with("plan")
    ),
    Exploration("real", ("growing", "ring"), real),
    Exploration("attention-pages", ("page", "attention"), partial(formed, attended_pages)),
    Exploration("rope-pages", ("page", "attention", "rope"), partial(formed, partial(attended_pages, turns=True))),
    Exploration("real-pages", ("page",), real_pages),
    Exploration("real-attention-pages", ("page", "attention"), partial(real_pages, ATTENDED)),
)
