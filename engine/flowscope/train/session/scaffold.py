"""`fs.train.Scaffold`: the pieces that make a session ready to train, found or made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flowscope.errors import GraphError
from flowscope.graph.default import get_default_graph
from flowscope.ops.core.flow import group
from flowscope.ops.host.summaries import merge_all
from flowscope.ops.state.variable_lists import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
    tables_initializer,
)
from flowscope.ops.state.variables import GraphKeys
from flowscope.train.checkpoint.saver import Saver

_FIELDS = (
    "init_op", "init_feed_dict", "init_fn", "ready_op", "ready_for_local_init_op",
    "local_init_op", "local_init_feed_dict", "summary_op", "saver",
)  # fmt: skip


class Scaffold:
    """The pieces that make a session ready to train.

    `finalize` takes those that are not given from the graph's collections, and makes the ones that
    are not there either. What is given is not added to collections.

    Args:
        init_op: Initialises the variables; by default all global ones.
        init_feed_dict: Values that `init_op` is fed.
        init_fn: Called as `init_fn(scaffold, session)` after `init_op`.
        ready_op: A string vector of what is not ready, empty when all is; by default the names of
            the variables that have no value.
        ready_for_local_init_op: Likewise: what `local_init_op` needs. By default the names of the
            global variables that have no value.
        local_init_op: Initialises what no checkpoint has; by default all local variables
            and tables.
        summary_op: Gathers all summaries, if there are any.
        saver: Restores the variables; by default a `Saver` of all, if there are any.
        copy_from_scaffold: A scaffold whose pieces stand in for those that are not given.
        local_init_feed_dict: Values that `local_init_op` is fed.
    """

    init_op: Any
    init_feed_dict: Mapping[Any, Any] | None
    init_fn: Callable[[Any], None] | None
    ready_op: Any
    ready_for_local_init_op: Any
    local_init_op: Any
    local_init_feed_dict: Mapping[Any, Any] | None
    summary_op: Any
    saver: Any

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Scaffold, Any], None] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Saver | None = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: Mapping[Any, Any] | None = None,
    ) -> None:
        own_fn = None if init_fn is None else lambda session: init_fn(self, session)
        given = {
            "init_op": init_op,
            "init_feed_dict": init_feed_dict,
            "init_fn": own_fn,
            "ready_op": ready_op,
            "ready_for_local_init_op": ready_for_local_init_op,
            "local_init_op": local_init_op,
            "local_init_feed_dict": local_init_feed_dict,
            "summary_op": summary_op,
            "saver": saver,
        }
        for name in _FIELDS:
            value = given[name]
            setattr(self, name, getattr(copy_from_scaffold, name, None) if value is None else value)

    def finalize(self) -> Scaffold:
        """Finds or makes the missing pieces, and makes the default graph read-only."""
        keys = GraphKeys
        found: list[tuple[str, str, Callable[[], Any]]] = [
            ("init_op", keys.INIT_OP, global_variables_initializer),
            ("ready_op", keys.READY_OP, report_uninitialized_variables),
            ("ready_for_local_init_op", keys.READY_FOR_LOCAL_INIT_OP, _missing_global_variables),
            ("local_init_op", keys.LOCAL_INIT_OP, self.default_local_init_op),
            ("summary_op", keys.SUMMARY_OP, merge_all),
            ("saver", keys.SAVERS, _saver),
        ]
        for name, key, make in found:
            if getattr(self, name) is None:
                setattr(self, name, self.get_or_default(name, key, make))
        if self.saver is not None:
            self.saver.build()
        get_default_graph().finalize()
        return self

    @staticmethod
    def get_or_default(
        arg_name: str, collection_key: str, default_constructor: Callable[[], Any]
    ) -> Any:
        """The item of a collection of the default graph, made and added if there is none.

        Raises:
            GraphError: if the collection has several.
        """
        graph = get_default_graph()
        found = graph.get_collection(collection_key)
        if len(found) > 1:
            raise GraphError(
                f'expected one {arg_name} in the collection "{collection_key}", got {len(found)}: '
                f"say which one with Scaffold({arg_name}=...)"
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            graph.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Any:
        """Returns an operation that initialises all local variables and all tables."""
        return group(local_variables_initializer(), tables_initializer())


def _missing_global_variables() -> Any:
    return report_uninitialized_variables(global_variables())


def _saver() -> Saver:
    return Saver(sharded=True, allow_empty=True)


__all__ = ["Scaffold"]
