"""How much of the bound of ATTN-44 an output is off by: whoever computes it, and whatever it computes with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from kvref.list_model.attention_bound import PLAIN, Scoring, weighed
from kvspec.contract import Attention, Pair
from kvspec.geometry import DTYPES, Array, Config
from kvspec.masks import Explicit
from support.bounds import Used, steps, used
from support.engines.attention_engines import (
    F32,
    HOW,
    Case,
    backwards,
    blas,
    case,
    online,
    rounded_sum,
    rounded_weights,
)


class Asked(NamedTuple):
    """A query over rows, and what is asked of it besides."""

    case: Case
    how: Scoring = PLAIN
    form: str = ""

    def bound(self) -> tuple[Array, Array]:
        """The exact output over the rows as the form has them, and its bound. A sink is one row more."""
        c, sinks = self.read(), self.how.sinks
        keys, values = (np.pad(a, ((0, len(sinks)), (0, 0))) for a in (c.keys, c.values))
        added = np.pad(np.atleast_2d(c.added), ((0, 0), (0, len(sinks))))
        added[0, len(c.keys) :] = sinks
        wide = (a.astype(np.float64) for a in (c.query, keys, values, added))
        with np.errstate(all="ignore"):
            return weighed(*wide, c.dtype, how=self.how)[:2]

    def read(self) -> Case:
        """The case with rows as they are read in its form."""
        if not self.form:
            return self.case
        c, dtype = self.case, DTYPES[self.case.dtype]
        keys, values = (
            steps.reference(self.form, a.astype(dtype)[None, None])[0, 0].astype(F32) for a in (c.keys, c.values)
        )
        return c._replace(keys=keys, values=values)


Engine = Callable[[Asked], Array]


def share(by: str, engine: Engine, asked: Asked) -> Used:
    """The worst element of an engine's output."""
    with np.errstate(under="ignore"):
        return used(by, engine(asked), *asked.bound())


def through(name: str) -> Engine:
    """What a growing cache of an adapter answers."""

    def attended(asked: Asked) -> Array:
        c, dtype = asked.case, DTYPES[asked.case.dtype]
        rows = Pair(*(a.astype(dtype)[None, None] for a in (c.keys, c.values)))
        config = Config(1, 1, len(c.query), c.values.shape[1], c.dtype, form=asked.form or None)
        cache: Any = steps.adapter(name).open("growing", config)
        cache.append(*(a[:, :, :-1] for a in rows))
        last = (a[:, :, -1:] for a in rows)
        return np.asarray(cache.attend(c.query[None, None, None], *last, _options(asked)))[0, 0, 0]

    return attended


def _options(asked: Asked) -> Attention:
    """As a cache takes them. Where nothing is added there is no mask, so that fast kernels serve."""
    c, how = asked.case, asked.how
    masks = [Explicit(F32(a)[None, None, None]) for a in np.atleast_2d(c.added) if a.any()]
    cuts = tuple(range(1, len(c.keys), max(1, len(c.keys) // 3))) if how.parts else ()
    more = Attention(scale=how.scale, softcap=how.softcap, sinks=how.sinks or None, parts=cuts)
    return more._replace(through=tuple(masks)) if masks else more


def _apart(engine: Callable[[Case], Array], asked: Asked) -> Array:
    return engine(asked.read())


def by_torch(asked: Asked) -> Array:
    """`scaled_dot_product_attention` of torch in f32."""
    import torch

    c = asked.read()
    query, keys, values = (torch.from_numpy(np.array(a)) for a in (c.query[None], c.keys, c.values))
    mask = torch.from_numpy(F32(np.atleast_2d(c.added).sum(0))[None])
    whole = (a[None, None] for a in (query, keys, values, mask))
    attended = torch.nn.functional.scaled_dot_product_attention(*whole, scale=asked.how.scale)
    return np.asarray(attended[0, 0, 0].numpy())


ENGINES: dict[str, Engine] = {
    **{f"numpy, {e.__name__}": partial(_apart, e) for e in (blas, rounded_weights, rounded_sum, online, backwards)},
    **{name: through(name) for name in ("reference", "opencl", "opencl-fast", "cuda-cpu")},
    **({"torch": by_torch} if find_spec("torch") else {}),
}
"""All that attend over rows as they are, in f32."""

WITH_WAYS = ("reference", "opencl", "opencl-fast", "cuda-cpu")
"""Those that have softcaps, learned sinks, parts and rows in a form as well."""


def sample(dtype: str, seeds: int, how: Scoring = PLAIN, form: str = "") -> Iterator[Asked]:
    """Random numbers bent in every way, of 64 elements."""
    for bent, seed in product(HOW, range(seeds)):
        c = case(seed, bent, dtype, dim=64)
        yield Asked(c._replace(values=np.tile(c.values, (1, 11))[:, :64]), how, form)


def worst(names: Iterable[str], asked: Iterable[Asked]) -> list[Used]:
    """The worst element of each of these engines."""
    tried = list(asked)
    return [max(share(name, ENGINES[name], each) for each in tried) for name in names]
