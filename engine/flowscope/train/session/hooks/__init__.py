"""Hooks of monitored sessions, before and after each run. Users enter by `fs.train`.

`run_hook` has the base class, the other modules the hooks that come with flowscope. Monitored
sessions call them (`flowscope.train.session.monitored_session`).
"""
