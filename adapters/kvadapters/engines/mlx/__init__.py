"""Adapters for mlx-lm and mlx-vlm."""
