"""Proofs: all states of small configurations, every move from each."""
