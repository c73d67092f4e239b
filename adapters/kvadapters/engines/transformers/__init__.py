"""Adapters for Hugging Face transformers."""
