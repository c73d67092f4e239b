"""vLLM: its manager of blocks, with prefix caching and without."""
