"""Messages and arrays as bytes, and how they are sealed. Connections enter by `frames`."""
