"""The runtime: sessions, variables' values, devices, interrupts. One step of a plan.

In: fetches and feeds. Out: arrays. Called by the user, and observed by `flowscope.live`.
"""
