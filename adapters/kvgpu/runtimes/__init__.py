"""The runtimes: OpenCL, CuPy, and the CUDA text compiled for the CPU."""
