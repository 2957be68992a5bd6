"""Subscribers and the messages sent to them. Widgets enter by `bus` and `wire`, users by `show`."""
