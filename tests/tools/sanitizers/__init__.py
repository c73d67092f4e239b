"""The GPU code under sanitizers: memory errors and races, of the CUDA text on the CPU and of the OpenCL text.

`python -m tools.sanitizers asan|tsan|oclgrind` runs the kernels in a child process that the tool watches, and reads
its log; `asan` and `tsan` do so with attention for tensor cores and with captured steps of batches too. With
`--planted` it does so with bugs that are known, one of each kind, which the tool must name.
"""
