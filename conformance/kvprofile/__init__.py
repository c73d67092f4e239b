"""Measuring an adapter beside its peers and the limits of its device. It judges nothing."""
