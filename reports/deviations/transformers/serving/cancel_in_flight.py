"""transformers, continuous batching: with steps decided ahead, a cancelled request ends all. A wrong result.

SERVE-18, by hand: of five requests four are cancelled while a step computes them. The rows of one of these fill a
page in that step. When it is done its table is asked for, and is gone. Steps are decided ahead on GPUs: here
streams and events are stand-ins, and the model runs on a CPU.
"""

import sys
from unittest.mock import MagicMock, patch

import torch
import transformers
from transformers import ContinuousBatchingConfig, GenerationConfig, LlamaConfig, LlamaForCausalLM
from transformers.generation.continuous_batching import input_outputs

tiny = LlamaConfig(num_hidden_layers=1, num_attention_heads=1, hidden_size=8, vocab_size=60)
how = GenerationConfig(max_new_tokens=40, eos_token_id=-1, pad_token_id=0)
batching = ContinuousBatchingConfig(page_size=4, num_blocks=100, max_batch_tokens=64, use_async_batching=True)
input_outputs.ContinuousBatchingAsyncIOs._supported_device_types = ("cpu",)
with patch.object(input_outputs, "create_device_stream", MagicMock()), patch.object(torch, "Event", MagicMock()):
    manager = LlamaForCausalLM(tiny).eval().init_continuous_batching(how, batching)
    names = [manager.add_request(list(range(10 * n, 11 * n + 3)), streaming=not n) for n in range(5)]
    manager.start()
    manager.get_result(timeout=100)
    for name in names[:4]:
        manager.cancel_request(name)
    manager.stop()
kept = [said for said in iter(manager.get_result, None) if said.request_id == names[4]][-1]
print(f"transformers {transformers.__version__}, use_async_batching: of five requests four are cancelled")
print("expected: the other one gets its 40 tokens")
print(f"seen:     {'it does' if kept.error is None else f'it ends with an error, KeyError({kept.error})'}")
sys.exit(kept.error is None)
