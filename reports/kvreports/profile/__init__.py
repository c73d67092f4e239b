"""The record of a profile as JSON, HTML and Markdown."""
