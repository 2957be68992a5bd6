"""Sessions, state, devices; one step of a plan. Users enter by `session.session`.

In: fetches and feeds. Out: arrays. Called by the user, and observed by `flowscope.live`.
"""
