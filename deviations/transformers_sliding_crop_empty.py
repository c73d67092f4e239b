"""transformers 5.23.0: cropping a sliding layer that holds nothing yet raises AttributeError. A broken promise.

Shortest trace: ring window=1: rewind 0 (RING-6). `DynamicLayer.crop` returns where the layer is not
initialized, and says why: "can happen with KV sharing". `DynamicSlidingWindowLayer.crop` calls it and then
reads the shape of keys that are None. A growing layer takes the same call. Status 0 if it still reproduces.
"""

import sys

from float64 import report
from transformers import DynamicCache, MistralConfig


def cropped(window):
    """What `crop(0)` of an empty cache answers."""
    try:
        DynamicCache(config=MistralConfig(num_hidden_layers=1, sliding_window=window)).crop(0)
    except AttributeError as e:
        return f"AttributeError: {e}"
    return "taken"


found = {"sliding": cropped(4), "growing": cropped(None)}
message = "; ".join(f"{name}: {answer}" for name, answer in found.items())
sys.exit(report(found["sliding"].startswith("AttributeError") and found["growing"] == "taken", message))
