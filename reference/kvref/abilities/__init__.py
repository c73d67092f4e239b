"""What caches of several kinds can do: attend, hold drafts, save and move rows, turn them, share a batch."""
