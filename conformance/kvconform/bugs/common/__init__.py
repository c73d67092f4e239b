"""Common bugs that nobody reported here, each under the name of its anomaly. Tables and modules follow the
sections of the appendix on anomalies. Bugs that cost too much are in `operations`."""
