"""transformers: cropping a layer that holds nothing yet raises TypeError. A broken promise.

`Cache.crop` crops every layer, and a layer without rows, as one that shares those of another, holds no keys to cut.
"""

import sys
from importlib.metadata import version

from transformers.cache_utils import DynamicLayer

expected, layer = "0 rows", DynamicLayer()
try:
    layer.crop(-1)
    seen = f"{layer.get_seq_length()} rows"
except TypeError as e:
    seen = f"TypeError: {e}"
print(f"transformers {version('transformers')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
