"""Files of events for TensorBoard. Users enter by `fs.summary`, hooks by `summary_writer`."""
