"""vLLM: a prefix that goes on on the host lacks the rows of the newest chunk. A wrong result.

STEP-7, by hand: of a prompt 12 tokens are on the device and 8 more on the host. It goes on at 20, where layers with
chunks of 8 see 16 to 19: their block is not loaded. No model runs here.
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
host = SimpleCPUOffloadScheduler(config, layers.KVCacheConfig(40, memory, groups), 40, 4, 4)
hashed = get_request_block_hasher(4, sha256)
prompt = Request("a", list(range(22)), vllm.SamplingParams(max_tokens=1), None, block_hasher=hashed)
for group in range(2):
    blocks = host.cpu_block_pool.get_new_blocks(5)
    host.cpu_block_pool.cache_full_blocks(prompt, blocks, 0, 5, 4, group)
    host.cpu_block_pool.free_blocks(blocks)
host.bind_gpu_block_pool(MagicMock())
found, _ = host.get_num_new_matched_tokens(prompt, 12)
table = tuple([KVCacheBlock(10 * group + n) for n in range(5)] for group in range(2))
host.update_state_after_alloc(prompt, KVCacheBlocks(table), found)
loaded = host.build_connector_meta(SchedulerOutput.make_empty()).load_gpu_blocks
print(f"vllm {vllm.__version__}: 12 tokens on the device and {found} on the host, blocks of 4, chunks of 8")
print("expected: blocks 3, 4 and 14 are loaded; behind 20 tokens, layers with chunks see 16 to 19, in block 14")
print(f"seen:     blocks {', '.join(map(str, loaded))} are loaded")
sys.exit(14 in loaded)
