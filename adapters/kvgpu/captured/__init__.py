"""Decode steps captured whole: of a store's layers, and of batches that grow, slide in windows, or lie in pages."""
