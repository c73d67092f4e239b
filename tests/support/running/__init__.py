"""How tests run what they test: the command line, workers, and adapters in this process."""
