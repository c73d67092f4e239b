"""The mutation matrix as JSON, HTML and Markdown."""
