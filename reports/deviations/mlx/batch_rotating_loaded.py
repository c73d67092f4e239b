"""mlx-lm: a `BatchRotatingKVCache` that was loaded takes no rows. Wrong result.

SNAP-3, by batch=2 window=3: append 1; snapshot s; restore s 1; append 1. `from_state` makes it without `__init__`,
and its state does not name `_lengths`, which each update asks for. `_right_padding` of a `BatchKVCache` is missing
in the same way, until its next `prepare`.
"""

import sys
from importlib.metadata import version
from tempfile import TemporaryDirectory

import mlx.core as mx
from mlx_lm.models.cache import BatchRotatingKVCache, load_prompt_cache, save_prompt_cache

cache, row = BatchRotatingKVCache(3, [0, 0]), mx.ones((2, 1, 1, 4))
cache.update_and_fetch(row, row)
with TemporaryDirectory() as folder:
    save_prompt_cache(f"{folder}/cache.safetensors", [cache])
    (loaded,) = load_prompt_cache(f"{folder}/cache.safetensors")
    mx.eval(loaded.state)
expected = "2 rows of each sequence"
try:
    seen = f"{loaded.update_and_fetch(row, row)[0].shape[2]} rows of each sequence"
except AttributeError as e:
    seen = f"AttributeError: {e}"
print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
