"""Neural networks: activations, softmax, convolutions, pools, normalisation, dropout, CTC."""
