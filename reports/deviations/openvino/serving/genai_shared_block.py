"""OpenVINO GenAI, shared prefixes: two prompts that go on from one text write into the same block. A wrong result.

SERVE-12: a request's answer does not depend on what is computed beside it. Give the folder of a model in OpenVINO's
format:

    kvconform probe qwen3 --layers full,full --output tokens -o probe
    optimum-cli export openvino --model probe --task text-generation-with-past --weight-format fp32 model
"""

import sys

import numpy as np
import openvino_genai as genai
from openvino import Tensor


def answers(*rounds):
    config = genai.SchedulerConfig()
    config.num_kv_blocks, config.enable_prefix_caching = 64, True
    exact = {"KV_CACHE_PRECISION": "f32", "INFERENCE_PRECISION_HINT": "f32"}
    pipe = genai.ContinuousBatchingPipeline(sys.argv[1], config, "CPU", exact)
    asked = genai.GenerationConfig(max_new_tokens=6, ignore_eos=True, do_sample=False)
    for prompts in rounds:
        made = pipe.generate([Tensor(np.array([prompt])) for prompt in prompts], [asked] * len(prompts))
    return [answer.m_generation_ids[0] for answer in made]


turn = [*range(20, 60), *answers([range(20, 60)])[0]]  # 40 tokens and an answer: a block has 32
prompts = [*turn, *range(60, 78)], [*turn, *range(80, 98)]
alone = [answers([prompt])[0] for prompt in prompts]
together = answers([range(20, 60)], prompts)
print(f"openvino-genai {genai.__version__}: answers to two next turns of one conversation")
print(f"expected: {alone}\nseen:     {together}")
sys.exit(together == alone)
