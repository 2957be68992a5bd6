"""Signals: Fourier and cosine transforms, frames, windows. Users enter by `fs.signal`."""
