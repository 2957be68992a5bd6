"""Losses and metrics: cross entropies, weighted and sampled losses; means, counts and rankings."""
