"""Whole engines that serve requests: what a driver of one gives, and drivers, about thirty lines each."""
