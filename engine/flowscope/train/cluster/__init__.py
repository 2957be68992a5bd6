"""Clusters as TensorFlow 1 names them. Users enter by `fs.train`."""
