"""Generate traces by strategies and covers, shrink them, and fit them to an adapter's limits."""
