"""`python -m tools.on_gpu.with_hopper WORDS`: runs `python -m WORDS` with the kernels for compute capability 9.0.

`cupy-fast` takes them only where they are asked for.
"""

from __future__ import annotations

import os
import sys

from kvgpu.runtimes.fast.hopper_prefill import OPTION

if __name__ == "__main__":
    os.execve(sys.executable, [sys.executable, "-m", *sys.argv[1:]], os.environ | {OPTION: "1"})
