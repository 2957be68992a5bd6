"""Neural networks: activations, convolutions, pools, CTC. Users enter by `fs.nn`."""
