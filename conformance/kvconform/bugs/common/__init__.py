"""Common bugs that nobody reported here, each under the name of its anomaly: tables and modules by the sections of
the appendix on anomalies; what costs too much stands in `operations`."""
