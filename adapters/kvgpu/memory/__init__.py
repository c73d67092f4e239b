"""Device memory: buffers, the layout of rows in them, page pools, tables."""
