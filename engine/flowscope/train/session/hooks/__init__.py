"""Hooks of monitored sessions: what is done before and after each run, and with each new session.

`run_hook` has the base class, the other modules the hooks that come with flowscope. Monitored
sessions call them (`flowscope.train.session.monitored_session`).
"""
