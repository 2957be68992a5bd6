"""Sessions that are restored and go on. Users enter by `fs.train`, hooks by `hooks`."""
