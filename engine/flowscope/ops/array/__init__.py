"""Arrays: made, reshaped, joined, gathered, scattered, padded, selected, sorted; segments."""
