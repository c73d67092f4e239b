"""KV caches in plain numpy (`cache`), and their kvconform adapter (`adapter`)."""
