"""The bounds there are: where each is derived, who is held to it, and what comes near it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kvref.list_model.attention_bound import PLAIN, TANH, Scoring
from kvspec.geometry import DTYPES
from support.bounds import Used, attends, hard, latents, steps, turns
from support.bounds.attends import Asked, Engine

HALF = 0.5
"""The share of a bound that something must reach."""


class Line(NamedTuple):
    """A bound, and how to measure what is used of it."""

    what: str
    bound: str
    source: str
    """The clause that says it."""
    good: Callable[[int], list[Used]]
    """The worst element of each implementation, over so many samples."""
    hard: Callable[[], list[Used]]
    """The same where the input is made to use the bound up; nothing if the samples do."""
    least: float = HALF
    """What is reached at least."""
    why: str = ""
    """Why it is not half."""


STEPS = {
    "int8": "half a scale",
    "int4": "half a scale",
    "q8_0": "half a scale, and 2^-11 of the largest",
    "int8a": "a scale",
    "int4a": "a scale",
    "q4_0": "a scale, and 2^-11 of the largest",
    "e4m3": "2^-4 of it, or 2^-10 of the scale",
    "e5m2": "2^-3 of it, or 2^-17 of the scale",
    "latent": "nothing: to the bit",
}
"""The steps of forms, by their codes; to each come roundings of f32, that to the dtype, and what is beyond the
largest number of a given scale."""


def forms() -> Iterator[Line]:
    """Elements that are read of rows, by form and dtype."""
    for text in steps.FORMS:
        codes, _, _ = text.partition(",")[0].partition("/")
        for dtype in DTYPES:

            def good(samples: int, text: str = text, dtype: str = dtype) -> list[Used]:
                return steps.worst(text, dtype, samples)

            exact = {"least": 0.0, "why": "there is nothing to reach"} if codes == "latent" else {}
            yield Line(f"{text}, {dtype}", STEPS[codes], "ROW-3", good, list, **exact)  # type: ignore[arg-type]


CAPPED = Scoring(softcap=30.0)
ATTEND = "A + R (V + G) + T"
"""The bound of an output, in the letters of the chapter."""


def outputs() -> Iterator[Line]:
    """Attention over plain rows, by dtype, and what is asked besides."""
    yield _attends(
        "rows in f32", "f32", [hard.astray(), hard.half_digits()], (attends.through("reference"), hard.one_by_one)
    )
    for dtype in ("f16", "bf16"):
        tried = [hard.astray(dtype), hard.halfway(dtype)]
        yield _attends(f"rows in {dtype}", dtype, tried, (attends.through("reference"), hard.in_the_dtype))
    scale, capped = Scoring(scale=0.25), Scoring(softcap=4 * hard.LOUD["f32"])
    yield _way("a scale that is given", scale, hard.astray(how=scale))
    yield _way("a softcap", CAPPED, hard.astray(how=capped))
    yield _way("a learned sink", Scoring(sinks=(0.5,)), hard.beside_a_sink())
    parts = Scoring(parts=True)
    yield _way("parts that are joined", parts, hard.astray(how=parts))
    tanh = CAPPED._replace(tanh=TANH["hardware"])
    yield _hard("a softcap with the tanh of the hardware", tanh, hard.tanh_alone(tanh), hard.approximate)
    yield _hard("a mask of 64 arrays", PLAIN, hard.arrays(), hard.added_up)
    yield _hard("numbers below the normal ones", PLAIN, hard.subnormal(), hard.flushing)


def _attends(what: str, dtype: str, asked: list[Asked], by: tuple[Engine, ...]) -> Line:
    """Everybody attends to rows of a dtype."""

    def good(samples: int) -> list[Used]:
        return attends.worst(attends.ENGINES, attends.sample(dtype, samples))

    return Line(what, ATTEND, "ATTN-44", good, lambda: list(map(_reached, by, asked)))


def _way(what: str, how: Scoring, asked: Asked) -> Line:
    """Caches attend to f32 rows in a way that not everybody has."""

    def good(samples: int) -> list[Used]:
        return attends.worst(attends.WITH_WAYS, attends.sample("f32", samples, how))

    return Line(what, ATTEND, "ATTN-44", good, lambda: [_reached(attends.through("reference"), asked)])


def _hard(what: str, how: Scoring, asked: Asked, by: Engine, least: float = HALF, why: str = "") -> Line:
    """What only engines in numpy do, which are as inexact as an engine may be."""
    return Line(what, ATTEND, "ATTN-44", lambda samples: [], lambda: [_reached(by, asked)], least, why)


def _reached(by: Engine, asked: Asked) -> Used:
    name = "strict attention" if by.__name__ == "attended" else by.__name__.replace("_", " ")
    return attends.share(name, by, asked)


FORMED = (
    "int8/32",
    "int4/32",
    "int8a/32",
    "int4a/32",
    "q8_0",
    "q4_0",
    "e4m3/32",
    "e5m2/32",
    "e4m3/t",
    "e5m2/h:1:3",
)
"""Forms whose rows are attended to."""


def formed() -> Iterator[Line]:
    """Attention over what is read of rows in a form."""
    for text in FORMED:

        def good(samples: int, text: str = text) -> list[Used]:
            return attends.worst(attends.WITH_WAYS, attends.sample("bf16", samples, form=text))

        def reached(text: str = text) -> list[Used]:
            asked = hard.half_digits(form=text), hard.halfway("bf16", form=text)
            return list(map(_reached, (hard.one_by_one, hard.in_the_dtype), asked))

        yield Line(f"rows in {text}", ATTEND, "ROW-16", good, reached)


def rotations() -> Iterator[Line]:
    """Elements that RoPE turned."""
    for dtype in DTYPES:

        def good(samples: int, dtype: str = dtype) -> list[Used]:
            return [
                turns.worst(name, turns.on(name), dtype, samples) for name in ("reference", "opencl", "cuda-cpu")
            ]

        low = {"least": 0.3, "why": ROUNDED} if dtype == "f32" else {}
        yield Line(f"RoPE, {dtype}", TURNED, "ROPE-8", good, list, **low)  # type: ignore[arg-type]

    def in_f32(samples: int) -> list[Used]:
        return [turns.worst("numpy, angles in f32", turns.in_f32, "f32", samples, "f32")]

    def far() -> list[Used]:
        return [turns.worst("by running products", turns.by_running_products, "f32", 1, "f32")]

    yield Line("RoPE, f32, `angles: f32`", f"{TURNED}; e larger", "ROPE-8", in_f32, far)


TURNED = "(3 u (1 + e) + e) (a + b), magnitudes; and the dtype's rounding"
ROUNDED = (
    "the roundings of a cosine, of two products and of their sum are counted as u each, and are not that large in "
    "all of them at once"
)


def ways() -> Iterator[Line]:
    """Latent rows, in both ways."""

    def good(samples: int) -> list[Used]:
        names = ("reference", "opencl", "opencl-fast", "cuda-cpu")
        m = latents.model(16 * samples, "f32")
        return [latents.apart(name, steps.adapter(name), "latent", m, heads=2) for name in names]

    yield Line("absorbed against plain", "both bounds", "ROW-24", good, list, 0.0, MATRIX)


MATRIX = (
    "512 elements are multiplied by a matrix, and what each may be off is added up, though they are off "
    "independently; each way by itself is on the lines above"
)


def parts() -> Iterator[Line]:
    """Parts of the bound of an output, each used up by itself as far as it can be."""
    yield _hard("weights, as the maximum grows 255 times", PLAIN, hard.rising(), hard.coarse, 0.1, GROWS)
    yield _hard("a weight that f16 loses", PLAIN, hard.light(), hard.cutting_off)
    yield _hard("a softcap's tanh alone", CAPPED, hard.opposite(CAPPED), hard.far_off)


GROWS = (
    "what a grown maximum costs is counted for each row and as much for the heaviest one, and up as well as down; "
    "an exponential is at most 4 u off in one direction"
)


def lines() -> dict[str, list[Line]]:
    """All bounds, under the headings of the page."""
    return {
        "Rows that are read": list(forms()),
        "Attention": list(outputs()),
        "Attention over rows in a form": list(formed()),
        "RoPE": list(rotations()),
        "Latent rows in both ways": list(ways()),
        "Parts of a bound": list(parts()),
    }
