"""Real bugs from the catalogue, one file a chapter."""
