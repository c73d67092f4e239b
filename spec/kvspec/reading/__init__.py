"""Readers of the chapters: clauses, worked examples, anomalies."""
