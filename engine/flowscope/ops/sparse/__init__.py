"""Sparse tensors: coordinates, values and a shape; their arithmetic; sets; embeddings."""
