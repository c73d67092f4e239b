"""Judges: compare what the adapter answered with what the oracle expects."""
