"""transformers: a crop of a quantised cache cuts no row that is encoded, or raises. Unchecked.

GROW-5, by form=e4m3/t: append 1; rewind 0. `is_croppable` is false, and `crop` is inherited from the layer that
keeps rows as they are. It cuts those of the residual window alone, of which an fp8 layer has none, and no length.
So do `batch_select_indices` and `batch_repeat_interleave`: the encoded rows keep their sequences.
"""

import sys

import torch
from transformers import MistralConfig, QuantizedCache, __version__


def after(what, *args):
    cache = QuantizedCache(backend="fp8", config=MistralConfig(num_hidden_layers=1, sliding_window=None))
    rows = torch.arange(8.0).reshape(2, 1, 4, 1)
    cache.update(rows, rows, 0)
    try:
        getattr(cache, what)(*args)
    except IndexError:
        return "IndexError"
    return f"{cache.layers[0]._quantized_keys[0].shape[0]} sequences of {cache.get_seq_length()} rows"


expected = "2 sequences of 3 rows, 1 sequences of 4 rows, 4 sequences of 4 rows"
crops = after("crop", -1), after("batch_select_indices", torch.tensor([0])), after("batch_repeat_interleave", 2)
print(f"transformers {__version__}: crop, select, repeat\nexpected: {expected}\nseen:     {', '.join(crops)}")
sys.exit(", ".join(crops) == expected)
