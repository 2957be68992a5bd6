"""From a region of nodes to a Python function with safepoints. Back ends enter by `function`."""
