"""Input: files of records, readers, examples, images. Users enter by `fs.io` and `fs`."""
