"""Right caches that share no storage with the reference: rows in lists, deques, dictionaries and chained pages.

Each claims level visible, and refuses by any exception, as engines do.
"""
