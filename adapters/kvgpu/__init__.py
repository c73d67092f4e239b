"""Caches on a device: the bookkeeping of each chapter written once over the small `runtime.Runtime`."""
