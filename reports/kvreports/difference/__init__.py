"""Two records of one engine, the older first: what became of each clause."""
