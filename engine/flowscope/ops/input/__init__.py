"""Input: files of records, what reads them, examples, images."""
