"""Apache TVM: its paged cache, as a pool, and one sequence of it as a growing cache."""
