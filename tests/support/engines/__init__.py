"""Engines that tests judge: small caches as engines write them, and faults planted in them."""
