"""SGLang: its tree of prefixes, and its pool of rows."""
