"""Random tensors: counter-based generators, distributions, stateless draws."""
