"""The suite: a list of checks. Each judges traces of one source on the adapter under test.

One file a source: worked examples, covers, laws, exploration, the whole system, honesty. `suite` lists them all.
"""
