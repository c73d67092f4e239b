"""How the frozen data are made: covers, large traces, walks, explored traces, and vectors."""
