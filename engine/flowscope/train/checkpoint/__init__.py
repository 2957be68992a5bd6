"""Variables to files and back. Users enter by `fs.train`, sessions by `saver`."""
