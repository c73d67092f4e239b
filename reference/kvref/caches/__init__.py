"""One file a kind: what it stores, slot by slot, and what every operation does to it."""
