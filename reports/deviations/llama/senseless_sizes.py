"""llama.cpp: a model whose sliding window is of 0 rows is loaded. Unchecked.

CACHE-3, by ring window=1: open B window=0. Give a gguf of a model with windows; its window is overridden.
"""

import sys
from importlib.metadata import version

import llama_cpp as llama

params = llama.llama_model_default_params()
first = llama.llama_model_load_from_file(sys.argv[1].encode(), params)
name = llama.ctypes.create_string_buffer(64)
llama.llama_model_meta_val_str(first, b"general.architecture", name, 64)
overrides = (llama.llama_model_kv_override * 2)()  # the second ends the array
overrides[0].key, overrides[0].tag = name.value + b".attention.sliding_window", llama.LLAMA_KV_OVERRIDE_TYPE_INT
overrides[0].val_i64 = 0
params.kv_overrides = overrides
model = llama.llama_model_load_from_file(sys.argv[1].encode(), params)
expected, seen = (
    "not loaded",
    f"loaded, with a window of {llama.llama_model_n_swa(model)}" if model else "not loaded",
)
print(f"llama-cpp-python {version('llama-cpp-python')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
