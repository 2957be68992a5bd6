"""What runs in the session's own process: Python, printing, checks. Users enter by `fs`."""
