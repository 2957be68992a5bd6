"""Recurrent networks: cells, and what runs them along time. Users enter by `fs.nn`.

In come users' cells and inputs, out go operations: variables by `fs.get_variable`, a `while_loop`
(`dynamic_rnn`, `raw_rnn`) or a copy of the cell per step (`static_rnn`). Who calls: users, through
`fs.nn`. Source: names and semantics are TensorFlow 1's.
"""
