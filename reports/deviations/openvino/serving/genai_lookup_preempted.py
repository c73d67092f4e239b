"""OpenVINO GenAI, prompt lookup in a pool that is soon full: a preempted request goes on wrongly. A wrong result.

SERVE-12: drafts change no token of an answer, in whatever company it is computed. Give the folder of a model in
OpenVINO's format:

    kvconform probe qwen3 --layers full,full --output tokens -o probe
    optimum-cli export openvino --model probe --task text-generation-with-past --weight-format fp32 model
"""

import sys

import numpy as np
import openvino_genai as genai
from openvino import Tensor


def answers(blocks, **drafts):
    config = genai.SchedulerConfig()
    config.num_kv_blocks, config.max_num_batched_tokens = blocks, 64
    exact = {"KV_CACHE_PRECISION": "f32", "INFERENCE_PRECISION_HINT": "f32"}
    pipe = genai.ContinuousBatchingPipeline(sys.argv[1], config, "CPU", {**exact, "prompt_lookup": bool(drafts)})
    asked = genai.GenerationConfig(max_new_tokens=66, ignore_eos=True, do_sample=False, **drafts)
    prompts = [Tensor(np.full((1, length), 20 + i)) for i, length in enumerate((127, 126, 125, 124))]
    return [made.m_generation_ids[0] for made in pipe.generate(prompts, [asked] * 4)]


plain, looked_up = answers(24), answers(24, num_assistant_tokens=3, max_ngram_size=3)
same = [sum(a == b for a, b in zip(*pair, strict=True)) for pair in zip(plain, looked_up, strict=True)]
print(f"openvino-genai {genai.__version__}: tokens of four answers that are the same with prompt lookup")
print(f"expected: [66, 66, 66, 66]\nseen:     {same}")
sys.exit(same == [66] * 4)
