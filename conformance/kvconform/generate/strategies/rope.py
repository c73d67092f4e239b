"""ROPE: rotations in every state of small caches, random traces on larger ones, and rows at huge positions."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import strategies as st

from kvconform.generate.strategies.configs import geometry
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan, rewinds
from kvconform.generate.strategies.trace_builder import Drawing
from kvconform.generate.strategies.walk_moves import Moves
from kvspec.chapters import CHAPTERS
from kvspec.geometry import Config
from kvspec.operations.arguments import PAIRINGS
from kvspec.session.driver import Session
from kvspec.trace import Trace

LONGEST = 14
"""Most operations of a trace."""

SMALL = Config(k_dim=4, v_dim=3, kv_heads=1, step=2)
"""Rows of the covered caches: two pairs of elements."""

GROWING = 3
"""Most rows of the covered growing cache and store."""

FAR = (100_000, (1 << 31) - 1, 1 << 32, 1 << 40)
"""Positions at which angles or integers of low precision go wrong."""

CONTEXT = 8192
"""The length of context on which released models were trained first."""

LONG = (CONTEXT - 1, CONTEXT, 32_768, 131_071)
"""Positions in the contexts that models are run on."""

HEADS = (64, 128)
"""Widths of the heads of released models."""

NEAR = (386482969782, 634982163474, -740439780889, 559353798958, 42106686282, -902209779836)
"""Positions with a difficult cosine or sine. Some lie so near the midpoint of two f32 numbers that f64 cannot tell
the nearest. Others lie so near 0 that only the far digits of the angle decide them."""

KINDS: dict[str, Config] = {
    "growing": SMALL,
    "ring": SMALL.changed(window=2),
    "store": SMALL.changed(layers=1, max_len=GROWING),
}
"""The covered caches."""


def moves(session: Session) -> list[str]:
    """Give attends that rotate their rows, rewinds to every position, and moves that leave the cache unchanged."""
    kind, cache = session.kinds["A"], session.caches["A"]
    if kind == "store":
        room = GROWING - int(cache.lengths_[0])
        attends = [f"attend {n} layer=0 rope=neox" for n in range(1, room + 2)]
        return [*attends, *(f"rollback {to}" for to in range(GROWING)), "reset", *STILL]
    room = 3 if cache.config.window else GROWING - cache.offset
    attends = [f"attend {n} rope={p}" for n in range(1, room + 1) for p in PAIRINGS if n < 3 or p == "neox"]
    attends += [f"attend 1 rope=neox scaling={LISTS}"] * (room > 0)
    near = cache.config.window is not None and cache.offset > cache.config.window
    refused = ["attend 1 rope=neox k_dim=5", "attend 0 rope=norm"]
    return [*attends, *rewinds(cache.offset, near), "free", *refused, *STILL]


LISTS = "longrope:4:2:1,1.5:2,4"
"""Two lists for the covered caches, which have positions on either side of 2."""

STILL = (
    "rotate 2 1",
    "rotate 3 0 pairing=norm by=2",
    "rotate 2 -1 dims=2 dtype=bf16",
    "rotate 2 100000 base=7 dtype=f32 stride=-3",
    "rotate 1 1 dims=3",
    "rotate 1 1 base=0",
    "rotate 2 3 scaling=yarn:4:64:8:1",
    "rotate 1 1 scaling=yarn:4:8:32:11",
    "rotate 1 1 scaling=linear:0.5",
    "rotate 2 1 positions=1",
    "rotate 0 1 dims=3",
    "rotate 3 2 k_dim=7 dims=6 kv_heads=2 batch=2 fill=bits",
    "scribble",
)
"""Operations that rotate rows without a cache, or are refused. The ramp of the second YaRN has no length."""


def continuations(session: Session) -> list[str]:
    """Give attends of one more token, and of a block of two."""
    if session.kinds["A"] == "store":
        return ["attend 1 layer=0 rope=neox", "rollback 1; attend 2 layer=0 rope=neox"]
    return ["attend 1 rope=neox; attend 1 rope=neox", "attend 2 rope=norm"]


def plans() -> list[Plan]:
    """Plan a growing cache, a ring and a store."""
    return [_plan(kind, config) for kind, config in KINDS.items()]


def _plan(kind: str, config: Config) -> Plan:
    look = "append 0" if kind == "store" else "view"
    return plan(f"rope {kind}", Trace(kind, config), moves, continuations, look)


@st.composite
def sections(draw: st.DrawFn, pairs: int) -> str:
    """Draw sections of these many pairs, which follow each other or take turns."""
    if draw(st.booleans()):
        height, width = (draw(st.integers(0, (pairs - each + 2) // 3)) for each in (1, 2))
        return f" sections={pairs - height - width},{height},{width}:interleaved"
    first, last = sorted((draw(st.integers(0, pairs)), draw(st.integers(0, pairs))))
    return f" sections={first},{last - first},{pairs - last}"


@st.composite
def configs(draw: st.DrawFn, kind: str) -> Config:
    """Draw rows of any geometry, mostly with an even number of elements; small windows and stores."""
    config = geometry(draw, widest=10)
    config = config.changed(k_dim=config.k_dim - config.k_dim % 2 * draw(st.sampled_from((1, 1, 1, 0))))
    if kind == "ring":
        return config.changed(window=draw(st.integers(1, 5)))
    if kind == "store":
        return config.changed(layers=draw(st.integers(1, 3)), max_len=draw(st.integers(1, 8)))
    return config.changed(step=draw(st.sampled_from((1, 3, 256))))


@st.composite
def explored(draw: st.DrawFn, claimed: Collection[str] = CHAPTERS) -> Trace:
    """Draw a trace that rotates rows in different ways, on a cache of a kind that is claimed. If attention is, it
    attends with some of them."""
    kind = draw(st.sampled_from([each for each in KINDS if each in claimed]))
    drawing = _Drawing(draw, Trace(kind, draw(configs(kind))))
    attends = ("attend",) * 3 if "attention" in claimed else ()
    return drawing.times(
        draw(st.integers(2, LONGEST)), ("rotate", "rotate", "stretch", *attends, "back", "append", "scribble")
    )


class _Drawing(Drawing):
    """Draws a trace."""

    def _turning(self) -> str:
        """Draw a pairing and a base."""
        return f"{self.of(*PAIRINGS)}{self.of('', '', ' base=500000', ' base=3', ' base=1')}"

    def _rotate(self) -> str:
        """Rotate rows without a cache; at times rows that cannot be rotated."""
        at, n = self.of(0, 1, 5, -1, -100, 4096, *FAR, *NEAR), self.of(1, 2, 3, 5, 0)
        width = self.start.config.k_dim
        dims = self.of("", "", f" dims={2 * self.number(1, width // 2)}", f" dims={self.number(-1, width + 1)}")
        more = self.of("", "", f" by={self.of(1, -3, -at, 70, FAR[0])}", f" stride={self.of(2, 0, -7, FAR[1])}")
        sort = self.of(
            "", "", " fill=bits", " dtype=f32", " dtype=bf16 fill=edges", " resident=1", " batch=2 kv_heads=4"
        )
        odd = self.of(*[""] * 12, " k_dim=5", " positions=1", " base=0")
        pairing = self.of(*PAIRINGS) if odd == " base=0" else self._turning()
        scaling = self.of("", "", self._scaling(width - width % 2, self.of(8, 64, CONTEXT)))
        image = self.of("", "", self._image(width // 2 + self.of(*[0] * 12, 1)))
        return f"rotate {n} {at} pairing={pairing}{dims}{more}{sort}{odd}{scaling}{image}"

    def _stretch(self) -> str:
        """Rotate heads as wide as those of released models, in contexts as long, by a scaling."""
        width, base = self.of(*HEADS), self.of(10_000, 500_000, 1_000_000)
        at, n = self.of(*LONG, self.number(0, LONG[-1])), self.of(1, 2, 3)
        how = f"pairing={self.of(*PAIRINGS)} base={base} k_dim={width} kv_heads=1 dtype={self.of('f32', 'f16')}"
        scaling = self._scaling(width, CONTEXT)
        by = "" if "longrope" in scaling else self.of("", "", f" by={self.of(-1, -4096)}")
        return f"rotate {n} {at} {how}{scaling}{by}{self.of('', self._image(width // 2))}"

    def _image(self, pairs: int) -> str:
        """Give rows three positions, mostly of an image."""
        return f"{self.draw(sections(pairs))}{self.of('', ' columns=1', ' columns=2', ' columns=3')}"

    def _scaling(self, dims: int, original: int) -> str:
        """Draw a scaling of rows of these many elements; now and then one that is refused."""
        factor = self.of(1, 1.3, 4, 32)
        bounds, m = self.of("", ":32:1", ":8:2", ":32:11"), self.of("", ":1", ":0.75")
        lists = (",".join(str(self.of(1, 1.08, 2.5, 1 + i)) for i in range(dims // 2)) for _ in range(2))
        made = (
            f"linear:{factor}",
            f"ntk:{factor}",
            f"llama3:{factor}:{self.of('1:4', '0.5:32')}:{original}",
            f"yarn:{factor}:{original}{bounds}{m if bounds else ''}{self.of('', ':exact')}",
            f"longrope:{factor}:{original}:{':'.join(lists)}{m}",
            *self.of((), (), ("linear:0.5", "llama3:8:4:1:64", "yarn:4:64:1:32", "longrope:4:8:1:1", "ntk:0")),
        )
        return f" scaling={self.of(*made)}" if dims > 1 else ""

    def _rows(self) -> int:
        """Draw how many rows to attend with: few, up to the window's fill, or beyond it."""
        window = self.start.config.window or 3
        return self.of(1, 1, 2, window, window + 1, 0)

    def _layer(self) -> str:
        """Name a layer of the store, or nothing for other caches."""
        layers = self.start.config.layers
        return f" layer={self.number(0, layers - self.of(1, 1, 1, 1, 0))}" if layers else ""

    def _attend(self) -> str:
        """Attend, mostly with RoPE."""
        rope = self.of(f" rope={self._turning()}", f" rope={self._turning()}", f" rope={self._turning()}", "")
        heads = self.of("", "", f" heads={2 * self.start.config.kv_heads}")
        sort = self.of("", "", "", " fill=bits", " resident=1", " queries=huge", " splits=3", " k_dim=11")
        width = self.start.config.k_dim
        scaling = self.of("", self._scaling(width - width % 2, self.of(2, 4, 64))) if rope else ""
        how = f"{rope}{scaling}{heads}{sort}"
        return f"attend {self._rows()}{how}{self._layer()}{self.of('', '', ' through causal & window=2')}"

    def _append(self) -> str:
        """Append rows without rotating them."""
        return f"append {self._rows()}{self._layer()} fill=random"

    def _back(self) -> str:
        """Go back to an earlier position."""
        cache = self.model
        if self.start.kind == "store":
            longest = max(layer.length for layer in cache.layers)
            return self.of(f"rollback {self.number(0, longest)}", "reset")
        return self.of(f"rewind {self.number(max(0, cache.offset - 3), cache.offset)}", "rewind 0", "free")


EXPLORATIONS = (Exploration("rope", (), explored, any_of=(tuple(KINDS),)),)

WALKS = Moves(
    {
        ("growing", "ring"): (
            "attend {q} rope=neox splits=2",
            "attend 1 rope=norm",
            "attend 1 rope=neox scaling=linear:4",
            "rotate {n} {to}",
            "rotate {n} {to} scaling=yarn:4:64:8:1:2",
        ),
        ("page",): ("attend {q} sequence={s} rope=neox splits=2", "attend 1 sequence={s} rope=norm"),
        ("store",): ("attend {q} layer={l} rope=neox splits=2", "attend 1 layer={l} rope=norm", "rotate {n} {to}"),
    }
)
