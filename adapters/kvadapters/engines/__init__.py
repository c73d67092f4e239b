"""Adapters for released engines, a file or folder an engine: they translate, and answer nothing in its place."""
