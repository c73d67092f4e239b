"""transformers: a window of 0, and a static cache of no rows, are made. Unchecked.

CACHE-3, by ring window=0; CACHE-3, by bounded max_len=0. Nothing can be attended to in either.
"""

import sys

import transformers
from transformers import DynamicCache, MistralConfig, StaticCache

expected = "ValueError"
try:
    sliding, whole = (MistralConfig(num_hidden_layers=1, sliding_window=window) for window in (0, None))
    window = DynamicCache(config=sliding).layers[0].sliding_window
    rows = [StaticCache(config=config, max_cache_len=0).layers[0].max_cache_len for config in (sliding, whole)]
    seen = f"a layer with a window of {window} and static ones of {rows} rows were made"
except ValueError:
    seen = expected
print(f"transformers {transformers.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
