"""Everything that is measured on a lent GPU, by one command, within a budget of minutes."""
