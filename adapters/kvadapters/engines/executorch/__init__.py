"""Adapters for executorch."""
