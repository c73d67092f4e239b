"""OpenVINO GenAI, shared prefixes: a block is found again whose rows were computed in part. A wrong result.

SERVE-13: a cancelled request leaves nothing behind that changes another answer. Give the folder of a model in
OpenVINO's format:

    kvconform probe qwen3 --layers full,full --output tokens -o probe
    optimum-cli export openvino --model probe --task text-generation-with-past --weight-format fp32 model
"""

import sys

import numpy as np
import openvino_genai as genai
from openvino import Tensor

asked = genai.GenerationConfig(max_new_tokens=6, ignore_eos=True, do_sample=False)
prompt, answers = Tensor(np.array([range(20, 120)])), []
config = genai.SchedulerConfig()
config.num_kv_blocks, config.enable_prefix_caching = 64, True
config.max_num_batched_tokens = 40  # a block has 32 tokens: a chunk ends within one
for cancelled in (False, True):
    exact = {"KV_CACHE_PRECISION": "f32", "INFERENCE_PRECISION_HINT": "f32"}
    pipe = genai.ContinuousBatchingPipeline(sys.argv[1], config, "CPU", exact)
    if cancelled:
        request = pipe.add_request(0, prompt, asked)
        pipe.step()
        request.cancel()
        pipe.step()
    answers.append(pipe.generate([prompt], [asked])[0].m_generation_ids[0])
print(f"openvino-genai {genai.__version__}: the answer to a prompt that was cancelled after its first chunk")
print(f"expected: {answers[0]}\nseen:     {answers[1]}")
sys.exit(answers[0] == answers[1])
