"""The record of a run as JSON, HTML, Markdown and text."""
