"""Live: what a view can show, as versioned messages. Widgets and `fs.show` enter by `watchers`.

In: graphs and sessions, looked at from outside a few times a second. Out: messages (`schema`) to
whoever subscribed; from them `Connect` and `Command`. Called by `flowscope_widgets`, and by
`fs.show` and `fs.progress`.
"""
