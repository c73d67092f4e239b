"""llama-cpp-python 0.3.36: a model whose sliding window is of 0 rows is loaded and used. Unchecked.

Shortest trace: ring window=1: open B window=0 (RING-14). Status 0 if it still reproduces.
"""

import sys

from float64 import report
from tinymodel import decode, load, open_context

model = load(window=0)
status = decode(open_context(model, whole=True), [1, 2, 3]) if model else None
sys.exit(report(status == 0, "a model with a window of 0 is loaded" if model else "it is not loaded"))
