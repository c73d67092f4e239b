"""Development tools: sanitizers, the browser check, generators of pages and frozen data."""
