"""LMCache, layer by layer: `clear` of a text forgets nothing, and says so. A broken promise.

KEY-33, by hand: rows are kept by keys of layers; `clear` removes the key without a layer, which has none.
"""

import os
import sys
from importlib.metadata import version

os.environ |= {"LMCACHE_TRACK_USAGE": "false", "LMCACHE_LOG_LEVEL": "CRITICAL"}
import torch
from lmcache.v1.cache_engine import LMCacheEngine
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.gpu_connector.mock_gpu_connector import MockGPUConnector
from lmcache.v1.metadata import LMCacheMetadata
from lmcache.v1.token_database import ChunkedTokenDatabase

seen, text, shape = [], [1, 2, 3, 4], (2, 2, 4, 1, 1)
for layers in (False, True):
    config = LMCacheEngineConfig.from_defaults(max_local_cpu_size=0.01, chunk_size=4, use_layerwise=layers)
    of = LMCacheMetadata("m", 1, 1, 0, 0, torch.float32, shape)
    engine = LMCacheEngine(config, of, ChunkedTokenDatabase(config, of), MockGPUConnector(shape), None, None)
    engine.post_init()
    store, ((_, _, key),) = engine.storage_manager, engine.token_database.process_tokens(text)
    if layers:
        rows = store.batched_allocate(torch.Size([4, 2, 1]), torch.float32, 2)
        store.batched_put(key.split_layers(2), rows)
    else:
        engine.store(text)
    seen.append((engine.lookup(text), engine.clear(text), engine.lookup(text)))
    engine.close()
print(f"lmcache {version('lmcache')}: found, cleared, found; whole, and layer by layer")
print(f"expected: [(4, 1, 0), (4, 2, 0)]\nseen:     {seen}")
sys.exit(seen == [(4, 1, 0), (4, 2, 0)])
