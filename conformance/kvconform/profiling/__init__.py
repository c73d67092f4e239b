"""Measuring an adapter beside its peers and the limits of its device. A profile says how fast; it judges nothing."""
