"""vLLM: a prefix that goes on on the host lacks the rows of the newest chunk. A wrong result.

STEP-7, by hand: of a prompt 12 tokens are on the device and 8 more on the host. It goes on at 20, where layers with
chunks of 8 see 16 to 19: their block is not loaded. Where the host has 4 more, it goes on at 16, where they see
none of these rows: a block is loaded, over the null block. No model runs here.
"""

import sys
from unittest.mock import MagicMock

import torch
import vllm
from vllm.utils.hashing import sha256
from vllm.v1 import kv_cache_interface as layers
from vllm.v1.core.kv_cache_manager import KVCacheBlock, KVCacheBlocks
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs
from vllm.v1.request import Request
from vllm.v1.simple_kv_offload.manager import SimpleCPUOffloadScheduler

register_all_kvcache_specs(None)
init_none_hash(sha256)
of = {"block_size": 4, "num_kv_heads": 1, "head_size": 4, "dtype": torch.float32}
kinds = (layers.FullAttentionSpec(**of), layers.ChunkedLocalAttentionSpec(attention_chunk_size=8, **of))
groups = [layers.KVCacheGroupSpec([f"{n}"], kind) for n, kind in enumerate(kinds)]
config = MagicMock(kv_events_config=None, speculative_config=None, max_in_flight_tokens=64)
config.parallel_config = MagicMock(decode_context_parallel_size=1, world_size=1)
config.model_config.max_model_len, config.num_prefill_lookahead_tokens = 256, 0
memory = [layers.KVCacheTensor(40, [f"{n}"], 1, 1) for n in range(2)]
hashed, loaded = get_request_block_hasher(4, sha256), []
for kept in (5, 4):
    host = SimpleCPUOffloadScheduler(config, layers.KVCacheConfig(40, memory, groups), 40, 4, 4)
    prompt = Request("a", list(range(4 * kept + 2)), vllm.SamplingParams(max_tokens=1), None, block_hasher=hashed)
    for group in range(2):
        blocks = host.cpu_block_pool.get_new_blocks(kept)
        host.cpu_block_pool.cache_full_blocks(prompt, blocks, 0, kept, 4, group)
        host.cpu_block_pool.free_blocks(blocks)
    host.bind_gpu_block_pool(MagicMock())
    found, _ = host.get_num_new_matched_tokens(prompt, 12)
    chunks = [KVCacheBlock(10 + n if n == 4 else 0) for n in range(kept)]  # 0 stands for what no query sees
    host.update_state_after_alloc(prompt, KVCacheBlocks(([KVCacheBlock(n) for n in range(kept)], chunks)), found)
    loaded.append(host.build_connector_meta(SchedulerOutput.make_empty()).load_gpu_blocks)
print(f"vllm {vllm.__version__}: 12 tokens on the device and 8, or 4, on the host, blocks of 4, chunks of 8")
print("expected: 3, 4 and 14 are loaded, which has rows 16 to 19; or 3, as behind 16 tokens no chunk goes on")
print(f"seen:     {loaded[0]} are loaded; or {loaded[1]}, and 0 is the null block")
sys.exit(loaded == [[3, 4, 14], [3]])
