"""The log of an engine, judged without an adapter: `kvconform check LOG`."""
