"""Diagnosis: which known bugs answer as the failing adapter does."""
