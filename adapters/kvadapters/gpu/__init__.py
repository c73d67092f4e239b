"""Caches on a device: the bookkeeping of each profile written once over the small `runtime.Runtime`."""
