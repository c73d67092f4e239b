"""transformers: cropping a layer of MiniMax-M3 that holds nothing raises. A broken promise.

GROW-5, by growing: rewind -1, which crops what there is. `crop` of the layer cuts the keys of an indexer that is
not there yet; the parent class guards against a layer that holds nothing.
"""

import sys

from transformers import DynamicCache, __version__
from transformers.cache_utils import DynamicLayer
from transformers.models.minimax_m3_vl.modeling_minimax_m3_vl import MiniMaxM3VLSparseCacheLayer


def cropped(layer):
    cache = DynamicCache()
    cache.layers.append(layer)
    try:
        return cache.crop(-1)
    except TypeError:
        return "TypeError"


expected, seen = cropped(DynamicLayer()), cropped(MiniMaxM3VLSparseCacheLayer())
print(f"transformers {__version__}: a crop of a layer that holds nothing")
print(f"expected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
