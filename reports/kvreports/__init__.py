"""Renders run records: one HTML page, Markdown, a table for the terminal, drawings of traces, JSON files."""
