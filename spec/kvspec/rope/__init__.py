"""RoPE beyond its plain form: scalings for longer contexts, and sections for images and videos."""
