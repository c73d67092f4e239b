"""OpenVINO GenAI, a draft model: a long prompt beside another request gets other tokens. A wrong result.

SERVE-12: a request's answer does not depend on what is computed beside it. Give the folder of a model in OpenVINO's
format, which drafts for itself here:

    kvconform probe qwen3 --layers full,full --output tokens -o probe
    optimum-cli export openvino --model probe --task text-generation-with-past --weight-format fp32 model
"""

import sys

import numpy as np
import openvino_genai as genai
from openvino import Tensor

prompts = [[*range(20, 48)], [*range(20, 180)] * 3]


def answers(*asked, **more):
    pipe = genai.ContinuousBatchingPipeline(sys.argv[1], genai.SchedulerConfig(), "CPU", more)
    config = genai.GenerationConfig(max_new_tokens=6, ignore_eos=True, do_sample=False)
    config.num_assistant_tokens = 3 if more else 0
    made = pipe.generate([Tensor(np.array([prompt])) for prompt in asked], [config] * len(asked))
    return [answer.m_generation_ids[0] for answer in made]


expected = answers(*prompts)[1]
seen = answers(*prompts, draft_model=genai.draft_model(sys.argv[1], "CPU"))[1]
print(f"openvino-genai {genai.__version__}: a prompt of 480 tokens beside one of 28, with a draft model")
print(f"expected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
