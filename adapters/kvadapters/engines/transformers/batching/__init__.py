"""Hugging Face transformers: the pages of its continuous batching."""
