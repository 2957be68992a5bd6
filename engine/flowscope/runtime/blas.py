"""How many threads the BLAS library under NumPy uses.

It is one setting for the process, so the session that was made last decides. Left alone, libraries
take one thread per core and wait for each other by spinning. On a machine with few cores that are
busy otherwise this costs far more than it gains (measured on two cores: 32 ms in place of 0.4 ms
for a product of 128x784 and 784x256), and then one thread is the better choice. Sums may differ in
their last bits between numbers of threads, so nothing here changes the number by itself.
"""

from __future__ import annotations

import threadpoolctl

from flowscope.errors import InvalidArgumentError


def limit_threads(count: int) -> None:
    """Lets BLAS use `count` threads in this process; 0 leaves it as it is.

    Raises:
        InvalidArgumentError: if the count is negative.
    """
    if count < 0:
        raise InvalidArgumentError(
            f"expected intra_op_parallelism_threads of 0 (as it is) or more, got {count}"
        )
    if count:
        threadpoolctl.threadpool_limits(count, user_api="blas")


def threads() -> int:
    """Returns how many threads BLAS uses; 1 where that is not known."""
    found = [i["num_threads"] for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"]
    return max(found, default=1)
