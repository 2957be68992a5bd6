"""Who looks, and what is sent to them. Widgets enter by `bus` and `wire`, users by `show`."""
