"""Common bugs, each under the name of its anomaly."""
