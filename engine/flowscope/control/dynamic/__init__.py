"""Control flow of primitives: Enter, Merge, Switch. Plans enter by `primitives`."""
