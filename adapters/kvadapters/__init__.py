"""Adapters: the reference, the GPU caches, and what puts any Python adapter on the wire."""
