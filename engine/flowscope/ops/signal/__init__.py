"""Signals: Fourier and cosine transforms, frames and windows."""
