"""Real bugs, planted. `real` has the bugs of the public catalogue, in a module and a table for each chapter
(`page.py`, `page.toml`). `common` has bugs that anybody could write. A diagnosis compares a failure with them."""
