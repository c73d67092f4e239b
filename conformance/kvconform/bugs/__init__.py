"""Real bugs, planted: `real` has those of the public catalogue, for each chapter a module and a table (`page.py`,
`page.toml`); `common` those that anybody could write. A diagnosis compares a failure with them."""
