"""Code generation: from a region of nodes to a Python function with safepoints."""
