"""Whether the scheduler and the workers of a cluster have flowscope, in this version."""

from __future__ import annotations

import pkgutil
from typing import Any, Protocol

from flowscope.cluster.servers.dask_losses import is_loss
from flowscope.errors import FailedPreconditionError, UnavailableError

_VERSION = "flowscope:__version__"
_INSTALL = (
    "install flowscope in the environment of the scheduler and of all workers (pip install "
    '"flowscope[cluster]"), or restart the cluster after that'
)


class ClientMethod(Protocol):
    """Calls a method of Dask's client by its name; returns its result."""

    def __call__(self, method: str, *arguments: Any, **options: Any) -> Any: ...


def check_versions(address: str, version: str, call: ClientMethod) -> None:
    """Raises if the scheduler or a worker has no flowscope, or another version.

    `resolve_name` is a function of Python's own, so that it reaches those that have none.

    Args:
        address: The scheduler's.
        version: This process' version.
        call: Calls methods of Dask's client.

    Raises:
        FailedPreconditionError: if one of them has none, or another one.
        UnavailableError: if one of them has gone before it has said so.
    """
    try:
        found = {"the scheduler": call("run_on_scheduler", pkgutil.resolve_name, _VERSION)}
    except (ImportError, AttributeError) as e:
        raise FailedPreconditionError(
            f"the scheduler at {address} has no flowscope ({e}): {_INSTALL}"
        ) from e
    workers = call("run", pkgutil.resolve_name, _VERSION, on_error="return")
    found |= {f"the worker at {address}": told for address, told in workers.items()}
    for who, told in found.items():
        if isinstance(told, Exception) and is_loss(told):
            raise UnavailableError(
                f"{who} has gone while it was asked for its version of flowscope, or cannot be "
                f"reached ({told})"
            )
    without = [who for who, told in found.items() if isinstance(told, Exception)]
    if without:
        raise FailedPreconditionError(
            f"{', '.join(without)} cannot import flowscope ({found[without[0]]}): {_INSTALL}"
        )
    other = [f"{who} has {told}" for who, told in found.items() if told != version]
    if other:
        raise FailedPreconditionError(
            f"this process has flowscope {version}, and {', '.join(other)}: all processes of a "
            "cluster need the same version"
        )


__all__ = ["check_versions"]
