"""Sparse tensors, sets, embeddings. Users enter by `fs.sparse`, ops by `sparse_tensor`."""
