"""Program order across cells: each has so many places for its operations."""

from __future__ import annotations

#: Places in program order that one cell has: its operations' orders share the bits above.
PLACES = 1 << 32
