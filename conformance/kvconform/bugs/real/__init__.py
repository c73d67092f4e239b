"""Real bugs from the catalogue: for each chapter a table and a module."""
