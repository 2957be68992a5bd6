"""Waiting: gates and values between threads. Steps enter by `gate`, clusters by `rendezvous`."""
