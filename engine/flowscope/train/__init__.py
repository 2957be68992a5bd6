"""Training: optimizers, built of variables and ops, without any help of the runtime.

In: a loss. Out: an operation that runs one update. Called by users.
"""
