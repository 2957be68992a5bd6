"""Checkpoints of objects: variables by where programs hold them, not by their names in graphs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from flowscope.errors import GraphError, InvalidArgumentError, UnmatchedError
from flowscope.graph.default import get_default_session
from flowscope.graph.values.dtypes import int64
from flowscope.ops.array.arrays import zeros
from flowscope.ops.state.checkpoint_file import CheckpointReader
from flowscope.ops.state.partitioned_variable import PartitionedVariable
from flowscope.ops.state.variables import Variable
from flowscope.train.checkpoint.checkpoints import update_checkpoint_state
from flowscope.train.checkpoint.restore_report import RestoreReport
from flowscope.train.checkpoint.saver import Saver
from flowscope.train.checkpoint.trackable import (
    VALUE,
    Trackable,
    check_trackable,
    variables_by_path,
)


class Checkpoint(Trackable):
    """Saves and restores what objects hold: `Checkpoint(step=step, optimizer=opt, model=layer)`.

    Variables, optimizers, layers, other Checkpoints, and lists and dicts of them. A variable's name
    in the file is its path, as TensorFlow writes it: "model/kernel/.ATTRIBUTES/VARIABLE_VALUE".

    Args:
        **kwargs: The objects by name.

    Raises:
        DTypeError: if the variables of an object cannot be found.
    """

    def __init__(self, **kwargs: Any) -> None:
        for name, value in kwargs.items():
            check_trackable(name, value)
            setattr(self, name, value)
        self._names = list(kwargs)
        self._counter: Variable | None = None
        self._count: Any = None
        #: A saver of the variables as they were found last.
        self._saver: tuple[dict[str, Any], Saver] | None = None

    def tracked(self) -> Mapping[str, Any]:
        """Returns the objects by name, and the counter."""
        held = {name: getattr(self, name) for name in self._names}
        return held if self._counter is None else {**held, "save_counter": self._counter}

    @property
    def save_counter(self) -> Variable:
        """An int64 variable that counts calls of `save`; it is made on first use."""
        if self._counter is None:
            self._counter = Variable(lambda: zeros([], int64), trainable=False, name="save_counter")
            self._count = self._counter.assign_add(1, read_value=True)
        return self._counter

    def write(self, file_prefix: Any, session: Any = None) -> str:
        """Writes a checkpoint of exactly this prefix, which is returned; nothing counts it.

        Args:
            file_prefix: The prefix.
            session: The session that holds the values; the default session by default.
        """
        path = os.fsdecode(file_prefix)
        saver = self._saver_of(variables_by_path(self))
        saver.save(session_of(session), path, write_meta_graph=False, write_state=False)
        return path

    def save(self, file_prefix: Any, session: Any = None) -> str:
        """Writes the checkpoint "<file_prefix>-<counter>", notes it as the folder's latest one.

        Args:
            file_prefix: The prefix; missing folders are made.
            session: The session that holds the values; the default session by default.

        Returns:
            The checkpoint's prefix, for `restore`.
        """
        sess = session_of(session)
        path = self.write(f"{os.fsdecode(file_prefix)}-{self._increment_save_counter(sess)}", sess)
        update_checkpoint_state(os.path.dirname(path) or ".", path, [path])
        return path

    def _increment_save_counter(self, sess: Any) -> int:
        """Counts a save: returns the counter after it has been incremented."""
        counter = self.save_counter
        if not sess.run(counter.is_initialized()):
            sess.run(counter.initializer)
        return int(sess.run(self._count))

    def restore(self, save_path: Any) -> LoadStatus | InitializationOnlyStatus:
        """The status of a restored checkpoint: it is read into a session when that is run.

        Variables that are made later, such as an optimizer's slots, are restored too if they are
        there when it is run. A checkpoint of a `Saver` is read by the variables' names.

        Args:
            save_path: The checkpoint's prefix; None: the status only initialises.

        Raises:
            NotFoundError: if there is no such checkpoint.
            DataLossError: if it is damaged.
        """
        self.save_counter  # noqa: B018 - it is restored too
        if save_path is None:
            return InitializationOnlyStatus(self)
        return LoadStatus(self, CheckpointReader(save_path), os.fsdecode(save_path))

    def _saver_of(self, by_name: dict[str, Any]) -> Saver:
        if self._saver is None or self._saver[0] != by_name:
            self._saver = by_name, Saver(by_name, max_to_keep=None, name="save_objects")
        return self._saver[1]

    def __repr__(self) -> str:
        return f"<fs.train.Checkpoint: {', '.join(self._names) or 'nothing'}>"


class InitializationOnlyStatus:
    """What `Checkpoint.restore(None)` returns: there is nothing to restore."""

    def __init__(self, root: Checkpoint) -> None:
        self._root = root

    def assert_consumed(self) -> InitializationOnlyStatus:
        """Raises UnmatchedError."""
        raise UnmatchedError("no checkpoint was given: nothing is restored")

    assert_existing_objects_matched = assert_consumed
    assert_nontrivial_match = assert_consumed

    def run_restore_ops(self, session: Any = None) -> None:
        """Raises UnmatchedError."""
        del session
        self.assert_consumed()

    def initialize_or_restore(self, session: Any = None) -> None:
        """Gives all variables their initial values."""
        _initialize(session_of(session), variables_by_path(self._root).values())


class LoadStatus:
    """What `Checkpoint.restore` returns: it says what fits, and restores it when it is run."""

    def __init__(self, root: Checkpoint, reader: CheckpointReader, path: str) -> None:
        self._root = root
        self._path = path
        names = reader.get_variable_to_shape_map()
        self._is_by_path = any(n.endswith(VALUE) for n in names)

    def assert_consumed(self) -> LoadStatus:
        """Raises UnmatchedError unless all in the checkpoint and all variables match."""
        report = self.assert_existing_objects_matched()._report()
        if report.extra:
            raise UnmatchedError(f"the checkpoint has what no object holds\n{report}")
        return self

    def assert_existing_objects_matched(self) -> LoadStatus:
        """Raises UnmatchedError unless the checkpoint has a value for each variable."""
        report = self._report()
        if report.missing:
            raise UnmatchedError(f"the checkpoint lacks what objects hold\n{report}")
        return self

    def assert_nontrivial_match(self) -> LoadStatus:
        """Raises UnmatchedError if the checkpoint has no variable's value but the counter's."""
        report = self._report()
        if all(name.startswith("save_counter") for name in report.fits):
            raise UnmatchedError(f"nothing of the checkpoint matches\n{report}")
        return self

    def expect_partial(self) -> LoadStatus:
        """Returns itself: what does not match is no error unless that is asserted."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Sets the variables that the checkpoint has values for.

        Raises:
            InvalidArgumentError: if a dtype or a shape differs: nothing is restored.
        """
        report = self._report()
        if report.misshapen or report.mistyped:
            raise InvalidArgumentError(f"{report}\nnothing was restored")
        self._saver().restore(session_of(session), self._path, partial=True)

    def initialize_or_restore(self, session: Any = None) -> None:
        """Sets the variables that the checkpoint has values for, and initialises the others."""
        sess = session_of(session)
        self.run_restore_ops(sess)
        lacking = {name for name, _ in self._report().missing}
        by_name = self._by_name()
        _initialize(sess, [v for name, v in by_name.items() if name in lacking])

    def _by_name(self) -> dict[str, Any]:
        found = variables_by_path(self._root)
        return found if self._is_by_path else {_own_name(v): v for v in found.values()}

    def _saver(self) -> Saver:
        return self._root._saver_of(self._by_name())

    def _report(self) -> RestoreReport:
        return self._saver().compare(self._path)


def _own_name(variable: Any) -> str:
    if isinstance(variable, PartitionedVariable):
        return variable.name
    return variable.op.name  # type: ignore[no-any-return]


def _initialize(sess: Any, variables: Any) -> None:
    parts = [p for v in variables for p in (v if isinstance(v, PartitionedVariable) else [v])]
    sess.run([p.initializer for p in parts])


def session_of(session: Any) -> Any:
    """Returns a session, or the default one; raises GraphError if there is none."""
    found = get_default_session() if session is None else session
    if found is None:
        raise GraphError("no default session: pass session=")
    return found


__all__ = ["Checkpoint", "InitializationOnlyStatus", "LoadStatus"]
