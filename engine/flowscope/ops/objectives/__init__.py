"""Losses and metrics: what training makes small, and what it is judged by."""
