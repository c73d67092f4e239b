"""Reads what queries saw off the answers of an engine."""
