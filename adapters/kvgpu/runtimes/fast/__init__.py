"""Fast attention: by rows on CPUs, by tensor cores on NVIDIA GPUs, in the place of the strict kernels."""
