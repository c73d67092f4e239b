"""OpenVINO GenAI, prefix caching: a prompt reuses rows that were computed with another adapter. A wrong result.

SERVE-19: each row was computed with the request's own adapter. Give the folder of a model in OpenVINO's format, of
a probe with adapters:

    kvconform probe qwen3 --layers full,full --output tokens --adapters -o probe
    optimum-cli export openvino --model probe --task text-generation-with-past --weight-format fp32 probe/openvino
"""

import sys

import numpy as np
import openvino_genai as genai
from openvino import Tensor

adapter = genai.Adapter(f"{sys.argv[1]}/../adapters/x/adapter_model.safetensors")
with_it, without = genai.AdapterConfig(adapter), genai.AdapterConfig()
prompt = Tensor(np.array([range(20, 90)]))


def last(*asked):
    pipe = genai.LLMPipeline(sys.argv[1], "CPU", adapters=with_it)
    answers = [pipe.generate(prompt, max_new_tokens=6, ignore_eos=True, adapters=how) for how in asked]
    return answers[-1].tokens[0]


alone, behind = last(with_it), last(without, with_it)
print(f"openvino-genai {genai.__version__}: a prompt with an adapter, after the same prompt without one")
print(f"expected: {alone}\nseen:     {behind}")
sys.exit(alone == behind)
