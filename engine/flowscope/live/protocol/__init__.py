"""The messages between the engine and a view, as data. Everybody enters by `schema`."""
