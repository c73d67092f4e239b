"""Wrong caches at real sizes: right ones of unlike designs, each with one thing made wrong where a trigger is met.

`designs` and `bases` hold the right caches, `triggers` and `effects` the words of the grammar; `grammar` combines
them; `wrapper` puts an attack on a base; `witness` shows that it is wrong; `judging` lets the suite judge it.
`python -m tools.attacks` prints the table.
"""
