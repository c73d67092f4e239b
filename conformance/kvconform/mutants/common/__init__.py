"""Common bugs that nobody reported here, each under the name of its anomaly: for each section of the appendix on
anomalies a table and a module."""
