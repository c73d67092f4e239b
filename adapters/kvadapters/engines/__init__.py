"""Adapters for released engines, one file an engine: they translate, and answer nothing in the engine's place."""
