"""Arrays: made, reshaped, joined, gathered, padded, sorted. Users enter by `fs`, ops by modules."""
