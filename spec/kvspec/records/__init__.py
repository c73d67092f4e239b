"""The documents that the harness writes: the records of a run, a profile, the mutants."""
