"""vLLM on a CPU, adapters: beside a request with one, another without is computed with the last. A wrong result.

SERVE-19: a request that names no adapter is answered as if there were none. Tokens without an adapter have the
index -1, and torch takes the last one for it. Give the folder of a probe:

    kvconform probe qwen3 --layers full,full --adapters -o probe
"""

import os
import sys

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_CPU_KVCACHE_SPACE": "1"}
os.environ |= {"TORCH_COMPILE_DISABLE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
import vllm
from vllm.lora.request import LoRARequest

name, folder = "y", sys.argv[1]
sizes = {"block_size": 32, "num_gpu_blocks_override": 20, "max_model_len": 256, "enable_prefix_caching": False}
lora = {"enable_lora": True, "max_loras": 1, "max_lora_rank": 8}
how = {"skip_tokenizer_init": True, "enforce_eager": True, "dtype": "float32", "max_logprobs": -1}
llm = vllm.LLM(folder, **how, **sizes, **lora)
asked = vllm.SamplingParams(max_tokens=1, logprobs=-1, detokenize=False)
adapter = LoRARequest(name, 1, f"{folder}/adapters/{name}")


def answer(*adapters):
    prompts = [{"prompt_token_ids": list(range(20))} for _ in adapters]
    outputs = llm.generate(prompts, asked, lora_request=list(adapters), use_tqdm=False)
    return {token: found.logprob for token, found in outputs[0].outputs[0].logprobs[0].items()}


alone = answer(None)
beside = answer(None, None), answer(None, adapter)
off = [max(abs(said[t] - alone[t]) for t in alone) for said in beside]
print(f"vllm {vllm.__version__}: logprobs of a request without an adapter")
print("expected: off by 0.00 beside another one without, and beside one with an adapter")
print(f"seen:     off by {off[0]:.2f} and by {off[1]:.2f}")
sys.exit(off[1] < 5e-3)
