"""Oracles: the reference and the list model, driven through a trace."""
