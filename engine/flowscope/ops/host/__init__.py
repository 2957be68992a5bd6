"""What runs in the session's own process: Python functions, printing, checks, the clock."""
