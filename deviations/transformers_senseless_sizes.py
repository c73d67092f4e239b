"""transformers 5.23.0: a window of 0, and a static cache of no rows, are made without a word. Unchecked.

Shortest traces: ring window=0: (RING-14); bounded max_len=0: (BOUNDED-12). Nothing can be attended to in either.
Status 0 if it still reproduces.
"""

import sys

from float64 import report
from transformers import DynamicCache, MistralConfig, StaticCache

sliding, whole = (MistralConfig(num_hidden_layers=1, sliding_window=window) for window in (0, None))
dynamic = DynamicCache(config=sliding).layers[0].sliding_window
static = [StaticCache(config=config, max_cache_len=0).layers[0].max_cache_len for config in (sliding, whole)]
text = f"a dynamic layer with a window of {dynamic} and static ones of {static} rows were made"
sys.exit(report([dynamic, *static] == [0, 0, 0], text))
