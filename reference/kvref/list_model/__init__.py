"""The list model: a cache is the list of its tokens, and *visible* is one line."""
