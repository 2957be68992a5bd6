"""One run of a plan. The runner of a session enters by `step`, a cluster by `split`."""
