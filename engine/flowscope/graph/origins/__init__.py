"""Which lines of the user's made an operation. Operations enter by `origin`."""
