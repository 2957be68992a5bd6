"""What the arguments of sessions and runs must be."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from flowscope.errors import DTypeError, GraphError, InvalidArgumentError, OpError
from flowscope.graph import default
from flowscope.graph.graph import Graph
from flowscope.graph.operation import runner
from flowscope.plan.partition.partitions import Mode
from flowscope.runtime.config import ConfigProto, RunMetadata, RunOptions
from flowscope.runtime.planning.fetches import structure_key

if TYPE_CHECKING:
    from flowscope.runtime.session.engine import Engine
    from flowscope.runtime.session.remote import SessionTarget


def check_arguments(graph: Any, config: Any, target: Any = None) -> None:
    """Raises unless these are arguments of a session; None stands for the default, or for any."""
    for name, value, wanted in (
        ("graph", graph, Graph),
        ("config", config, ConfigProto),
    ):
        if value is not None and not isinstance(value, wanted):
            kind = getattr(wanted, "__name__", "str")
            raise DTypeError(f"expected a {kind} as {name}, got {value!r}")
    if config is None:
        return
    config.check_refused()
    if target in ("", b"") and config.cluster_def.job:
        raise InvalidArgumentError(
            "config.cluster_def lists tasks, and the session is on none: expected a cluster or the "
            f"target of a server, got {target!r}"
        )
    if config.plan_cache_size < 2:
        raise InvalidArgumentError(
            f"expected a plan_cache_size of 2 or more, got {config.plan_cache_size}"
        )


def check_options(options: Any, run_metadata: Any) -> None:
    """Raises unless these are a run's options and metadata, or None."""
    if options is not None and not isinstance(options, RunOptions):
        raise DTypeError(f"expected options to be fs.RunOptions, got {options!r}")
    if run_metadata is not None and not isinstance(run_metadata, RunMetadata):
        raise DTypeError(f"expected run_metadata to be fs.RunMetadata, got {run_metadata!r}")


def key_of(fetches: Any, feeds: Any, mode: Mode) -> tuple[Hashable, tuple[Any, ...], Mode]:
    """The key that runs of the same fetches, feeds and mode share."""
    if not isinstance(feeds, Mapping | list | tuple):
        raise DTypeError(f"expected a list of what is fed, got {feeds!r}")
    key = (structure_key(fetches), tuple(feeds), mode)
    try:
        hash(key)
    except TypeError:
        raise bad_key(fetches) from None
    return key


def check_feed_dict(feed_dict: Any) -> None:
    """Raises unless it is a dict, or nothing."""
    if feed_dict and not isinstance(feed_dict, Mapping):
        raise DTypeError(
            f"expected feed_dict to be a dict of values by tensor, got {type(feed_dict).__name__}"
        )


def bad_key(fetches: Any) -> OpError:
    """Returns the error for fetches that cannot be looked up."""
    return DTypeError(
        "expected a tensor, an operation, a name or a structure of them to fetch, got "
        + type(fetches).__name__
    )


def cluster_of(
    target: str | bytes | SessionTarget, owner: Engine, config: ConfigProto
) -> SessionTarget:
    """Returns the cluster that a session's target names; see `target_of`."""
    from flowscope.runtime.session.remote import (  # most sessions are in this process
        START_S,
        target_of,
    )

    found = target_of(target, owner, config.operation_timeout_in_ms / 1e3 or START_S)
    return found.narrowed(config.cluster_def) if config.cluster_def.job else found


def run_in_default(fetch: Any, feed_dict: Any, session: Any) -> Any:
    """Runs what `Tensor.eval` and `Operation.run` ask for, in a session or the default one."""
    session = session or default.get_default_session()
    if session is None:
        raise GraphError("no default session: use `with sess.as_default():` or pass session=")
    if session.graph is not fetch.graph:
        raise GraphError("the default session runs another graph: pass session=")
    return session.run(fetch, feed_dict)


runner.append(run_in_default)
