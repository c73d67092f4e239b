"""LMCache, layer by layer, with LFU: after an eviction a lookup that finds rows fails. A wrong result.

By hand: to make room, the policy is asked for up to 64 keys, forgets how often each was used, and one chunk goes.
The others are found, and are not known to the policy.
"""

import os
import sys
from importlib.metadata import version

os.environ |= {"LMCACHE_TRACK_USAGE": "false", "LMCACHE_LOG_LEVEL": "CRITICAL"}
import torch
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.event_manager import EventManager
from lmcache.v1.metadata import LMCacheMetadata
from lmcache.v1.pin_monitor import PinMonitor
from lmcache.v1.storage_backend.storage_manager import StorageManager
from lmcache.v1.token_database import ChunkedTokenDatabase

how = {"max_local_cpu_size": 4.5 * 2 * 4096 / 2**30, "chunk_size": 4, "use_layerwise": True}
config = LMCacheEngineConfig.from_defaults(cache_policy="LFU", **how)  # room for four chunks of two layers
of = LMCacheMetadata("m", 1, 1, 0, 0, torch.float32, (2, 2, 4, 1, 1))
store, found = StorageManager(config, of, EventManager()), ChunkedTokenDatabase(config, of).process_tokens
PinMonitor.GetOrCreate(config, of)
for number in range(5):
    ((_, _, key),) = found([number] * 4)
    rows = store.batched_allocate(torch.Size([4, 2, 1]), torch.float32, 2, busy_loop=False)
    store.batched_put(key.split_layers(2), rows)
((_, _, key),) = found([3] * 4)
hits, _ = store.batched_contains(key.split_layers(2), pin=True)
try:
    store.touch_cache()
    seen = f"{hits} layers found"
except KeyError as e:
    seen = f"KeyError: {type(e.args[0]).__name__}"
print(f"lmcache {version('lmcache')}, LFU, two layers: five chunks, where four have room; the fourth is looked up")
print(f"expected: 2 layers found\nseen:     {seen}")
store.close()
sys.exit(seen == "2 layers found")
