"""The record of a serving engine as HTML, Markdown and text."""
