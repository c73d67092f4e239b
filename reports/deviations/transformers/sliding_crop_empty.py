"""transformers: cropping a sliding layer that holds nothing yet raises AttributeError. A broken promise.

RING-6, by ring window=1: rewind 0. `DynamicLayer.crop` returns where the layer is not initialized, and says
why: "can happen with KV sharing". `DynamicSlidingWindowLayer.crop` calls it and then reads the shape of keys
that are None.
"""

import sys

import transformers
from transformers import DynamicCache, MistralConfig


def cropped(window):
    try:
        DynamicCache(config=MistralConfig(num_hidden_layers=1, sliding_window=window)).crop(0)
    except AttributeError as e:
        return f"AttributeError: {e}"
    return "taken"


expected, seen = {"growing": "taken", "sliding": "taken"}, {"growing": cropped(None), "sliding": cropped(4)}
print(f"transformers {transformers.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
