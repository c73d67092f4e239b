"""SGLang: an urgent prompt is cut while another one is cut already, and the scheduler ends. A wrong result.

SERVE-18, by hand: an answer runs, and a long prompt is computed in chunks. Its second chunk is short, as the pool
for the window has few rows left; an urgent prompt preempts the answer and gets what is left of the chunk. The
scheduler keeps one prompt that is cut: `assert self.chunked_req is None` ends it. No model runs here.
"""

import sys
from array import array
from unittest.mock import MagicMock

import sglang
import torch
from sglang.srt.managers.schedule_batch import Req, ReqToTokenPool, SamplingParams, ScheduleBatch
from sglang.srt.managers.schedule_policy import ComponentType, SWATokenToKVPoolAllocator
from sglang.srt.managers.scheduler import PrefillAdder, SpeculativeAlgorithm, checkpoint_kv_cache, get_context
from sglang.srt.mem_cache.kv_cache_builder import CacheInitParams, SWAKVPool, UnifiedRadixCache

get_context().override_server_args(device="cpu", attention_backend="torch_native").install()
rows = SWAKVPool(200, 46, 1, torch.float32, 1, 2, [1], [0], "cpu")
slots = SWATokenToKVPoolAllocator(200, 46, 1, torch.float32, "cpu", rows, False)
pool, parts = ReqToTokenPool(3, 256, "cpu", False), (ComponentType.FULL, ComponentType.SWA)
tree = UnifiedRadixCache(CacheInitParams(False, pool, slots, 1, tree_components=parts, sliding_window_size=8))
how = SamplingParams(max_new_tokens=4)
low, long, urgent = (
    Req(f"{n}", "", array("q", range(99 * n, 100 * n)), how, vocab_size=9999, priority=-n) for n in (15, 39, 11)
)
first = PrefillAdder(1, tree, slots, None, 0.7, 256, 31)
for request in (low, long):
    request.init_next_round_input(tree)
    first.add_one_req(request, False, None)
model, drafts = MagicMock(vocab_size=9999), SpeculativeAlgorithm.NONE
running = ScheduleBatch.init_new([low, long], pool, slots, tree, model, False, drafts)
running.prepare_for_extend()
checkpoint_kv_cache(long, tree)
running.filter_batch(reqs_to_exclude=[long])
second = PrefillAdder(1, tree, slots, running, 0.7, 256, 31)
long.init_next_round_input()
cut = [second.add_chunked_req(long)]
second.preempt_to_schedule(urgent)
urgent.init_next_round_input(tree)
second.add_one_req(urgent, cut[0] is not None, None)
cut = [r.rid for r in (*cut, second.new_chunked_req) if r]
print(f"sglang {sglang.__version__}: prompts of 39 and 11 tokens, --enable-priority-scheduling, chunks of 31")
print("expected: one of them at most is not computed to its end in a step")
print(f"seen:     those of {' and '.join(cut)} tokens")
sys.exit(len(cut) < 2)
