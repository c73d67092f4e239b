"""Bugs of caches of several layers that are more than another text in one method."""
