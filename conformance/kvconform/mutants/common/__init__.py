"""Common bugs that nobody reported here, each under the name of its anomaly: one file a section of the appendix."""
