"""Neural networks: activations, softmax, bias, top k, convolutions, pools, moments, normalisation,
dropout, candidate sampling, CTC."""
