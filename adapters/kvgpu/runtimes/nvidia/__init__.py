"""The runtime of NVIDIA GPUs: CuPy over cubins that NVRTC compiles, and the clock of a GPU."""
