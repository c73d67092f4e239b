"""The caches on a device, one file a chapter, written once over a `Runtime`."""
