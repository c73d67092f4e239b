"""A serving engine to read: many requests at once, over one pool of blocks, in numpy.

    import serving_engine
    engine = serving_engine.open("probe", serving_engine.Settings(block_size=16, blocks=64))
    engine.add([1, 2, 3], new=4)
    while engine.busy():
        print(engine.step())

Read `engine.py` first; `scheduler.py` chooses what a step computes, `tables.py` gives sequences their blocks,
`prefix_cache.py` finds blocks that were computed before, `blocks.py` has the memory, `model.py` the network.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy reads it once; steps are too small for threads

from serving_engine.engine import Engine
from serving_engine.engine import load as open
from serving_engine.sequence import Output, Settings

__all__ = ["Engine", "Output", "Settings", "open"]
