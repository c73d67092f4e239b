"""How an adapter is judged at each level: by the reference, by what is frozen of it, or by the list model."""
