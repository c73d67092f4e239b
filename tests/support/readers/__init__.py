"""Readers of what the project publishes: a page followed word for word, a script of a page, exported vectors."""
