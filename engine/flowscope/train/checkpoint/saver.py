"""Savers: variables' values to checkpoints and back."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowscope.errors import (
    DTypeError,
    GraphError,
    InvalidArgumentError,
    NotFoundError,
)
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Tensor
from flowscope.graph.serialization.files import write_file
from flowscope.graph.serialization.meta import MetaGraphDef, meta_graph_of
from flowscope.graph.unsupported import refuse
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.state.checkpoint_file import CheckpointReader, is_written_here
from flowscope.ops.state.variables import GraphKeys, Variable
from flowscope.train.checkpoint.checkpoints import (
    get_checkpoint_mtimes,
    load_checkpoint,
    remove_checkpoint,
    update_checkpoint_state,
)
from flowscope.train.checkpoint.meta_graph import export_meta_graph
from flowscope.train.checkpoint.restore_report import RestoreReport, compare
from flowscope.train.checkpoint.retention import Retention
from flowscope.train.checkpoint.saveables import saved_things
from flowscope.train.checkpoint.saver_ops import SaverDef, SaverOps, build
from flowscope.train.optimizers.global_step import global_step as value_of_step


class Saver:
    """Writes variables' values to checkpoints and reads them back.

    A checkpoint is one safetensors file, written whole or not at all. Values are read as steps read
    them: between two updates a checkpoint holds the values between them; while other threads train,
    it may hold some variables before an update and some after it.

    Args:
        var_list: Variables and mutable tables to save, or a dict of them by their names in the
            checkpoint (which may be other names than in the graph); all global variables and
            checkpointed tables by default.
        reshape: Whether a value of another shape but the same size is restored.
        sharded: Whether devices may write apart. The devices of a process write one file in any
            case, under the same prefix.
        max_to_keep: How many checkpoints are kept; older ones are deleted. None or 0 keeps all.
        keep_checkpoint_every_n_hours: Of those that would be deleted one is kept every so many
            hours, counted from the first one.
        name: Name scope of the operations.
        restore_sequentially: Whether variables are restored one after the other, which needs less
            memory and takes longer.
        saver_def: What `as_saver_def` of a saver on the same graph returned: its operations are
            used, and none are added.
        builder: None: others than flowscope's own are refused.
        defer_build: Whether operations are added only by `build()`.
        allow_empty: Whether there may be no variables; `save` and `restore` then do nothing.
        write_version: `SaverDef.V2` for checkpoints in TensorFlow's form, which TensorFlow reads;
            None for ours. Both are restored. `SaverDef.V1` is refused.
        pad_step_number: Whether step numbers are filled up with zeros to eight digits.
        save_relative_paths: See `fs.train.update_checkpoint_state`.
        filename: Default prefix of the operations, for those who run them by themselves.

    Raises:
        InvalidArgumentError: if there are no variables, or two would have one name.
        DTypeError: if something is neither, or `saver_def` is no SaverDef.
        UnimplementedError: for a `builder` and old versions.

    Example:
        >>> w = fs.Variable([1.0, 2.0], name="w")
        >>> saver = fs.train.Saver()
        >>> with fs.Session() as sess:
        ...     sess.run(w.initializer)
        ...     path = saver.save(sess, "model")
        >>> with fs.Session() as sess:
        ...     saver.restore(sess, path)
        ...     sess.run(w)
        1 of 1 tensors can be restored from "model.safetensors"
        array([1., 2.], dtype=float32)
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: SaverDef | None = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int | None = None,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        _check_arguments(builder, write_version, saver_def)
        if defer_build and var_list is not None:
            raise InvalidArgumentError("with defer_build, var_list is all variables: pass none")
        self._var_list, self._saver_def = var_list, saver_def
        self._reshape, self._sequential = reshape, restore_sequentially
        self._sharded, self._allow_empty = sharded, allow_empty
        self._name, self._filename = name, filename
        self._as_bundle = write_version == SaverDef.V2
        self._pads, self._relative = pad_step_number, save_relative_paths
        if saver_def is not None:
            if name:  # the scope into which its graph was imported
                scope = name
                self._saver_def = saver_def = saver_def.moved(lambda n: f"{scope}/{n}")
            max_to_keep = saver_def.max_to_keep
            keep_checkpoint_every_n_hours = saver_def.keep_checkpoint_every_n_hours
        self._kept = Retention(max_to_keep, keep_checkpoint_every_n_hours)
        #: Prefixes of the checkpoints that this saver wrote.
        self._own: set[str] = set()
        self._ops: SaverOps | None = None
        self._is_built = False
        #: The graph's written form, None if there is none, and its version when it was written.
        self._written: tuple[tuple[int, bool], str | None] = ((-1, False), None)
        if not defer_build:
            self.build()

    def build(self) -> None:
        """Adds the operations, if that was deferred.

        Raises:
            InvalidArgumentError: if there are no variables.
        """
        if self._is_built:
            return
        if self._saver_def is not None:
            self._ops = SaverOps.found(self._saver_def, get_default_graph().as_graph_element)
        else:
            found = saved_things(_all_saveable() if self._var_list is None else self._var_list)
            if not found and not self._allow_empty:
                raise InvalidArgumentError("there are no variables to save")
            if found:
                self._ops = build(
                    found,
                    self._name,
                    self._filename,
                    self._reshape,
                    self._sequential,
                    self._as_bundle,
                )
        self._is_built = True

    # -- saving ---------------------------------------------------------------------------------

    def save(
        self,
        sess: Any,
        save_path: str | os.PathLike[str],
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Writes a checkpoint, notes it as the latest one and deletes those that are too many.

        Args:
            sess: The session that holds the values.
            save_path: Prefix of the checkpoint; missing folders are made.
            global_step: An integer, or a variable or tensor of one: "model" becomes "model-1000".
            latest_filename: Name of the file that says which checkpoint is the latest;
                "checkpoint" by default.
            meta_graph_suffix: Suffix of the graph's file.
            write_meta_graph: Whether the graph is written beside the values, where it can be.
            write_state: Whether the checkpoint is noted and old ones are deleted.
            strip_default_attrs: Whether the graph's file leaves out attributes that are as the op
                type has them by default.
            save_debug_info: Whether the users' lines are written: the graph's file has them in any
                case.

        Returns:
            The checkpoint's prefix, for `restore`; None if there is nothing to save.

        Raises:
            FailedPreconditionError: if variables have no value yet; it names them all.
            InvalidArgumentError: if `save_path` and `latest_filename` clash, or no file can have
                such a path.
            GraphError: before `build()`.
            ResourceExhaustedError: if the disk is full. Earlier checkpoints stay as they are.
            DTypeError: if `sess` is no session, or `global_step` no integer.
        """
        del save_debug_info
        _check_session(sess)
        prefix = _prefix(sess, save_path, global_step, self._pads)
        _check_paths(prefix, latest_filename)
        ops = self._built_ops()
        if ops is not None:
            sess.run(ops.save_tensor, {ops.filename: prefix})
        if write_meta_graph:
            graph = sess.graph if ops is None else ops.graph
            self._write_graph(graph, f"{prefix}.{meta_graph_suffix}", strip_default_attrs)
        if ops is None:
            return None
        if write_state:
            self._note(prefix, latest_filename, meta_graph_suffix)
        return prefix

    def _note(self, prefix: str, latest_filename: str | None, meta_suffix: str) -> None:
        kept, gone = self._kept.with_new(prefix, get_checkpoint_mtimes([prefix])[0])
        update_checkpoint_state(
            os.path.dirname(prefix) or ".",
            prefix,
            [p for p, _ in kept.kept],
            latest_filename,
            [time for _, time in kept.kept],
            kept.preserved,
            self._relative,
        )
        self._kept = kept
        self._own.add(prefix)
        for old in gone:
            if old in self._own or _is_checkpoint_beside(old, prefix):
                self._own.discard(old)
                remove_checkpoint(old, meta_suffix)

    def _write_graph(self, graph: Graph, path: str, strip_default_attrs: bool) -> None:
        key = (graph.version, strip_default_attrs)
        if self._written[0] != key:
            self._written = (key, self._text_of(graph, strip_default_attrs))
        text = self._written[1]
        if text is not None:
            write_file(path, text)

    def _text_of(self, graph: Graph, strip_default_attrs: bool) -> str | None:
        try:
            meta = meta_graph_of(graph)
        except (DTypeError, InvalidArgumentError) as e:
            warnings.warn(
                f"the graph is not written beside the checkpoint: {e.message}; "
                "save(..., write_meta_graph=False) leaves it out",
                stacklevel=4,
            )
            return None
        if strip_default_attrs:
            meta.graph_def.strip_default_attrs()
        meta.saver = None if self._ops is None else self.as_saver_def().facts()
        return meta.to_json()

    # -- restoring ------------------------------------------------------------------------------

    def restore(
        self, sess: Any, save_path: str | os.PathLike[str], partial: bool = False
    ) -> RestoreReport | None:
        """Sets the variables to the values of a checkpoint; they need not be initialised before.

        The checkpoint is compared with the variables first: nothing is changed if something is
        missing or does not fit, unless `partial` is set.

        Args:
            sess: The session that gets the values.
            save_path: The checkpoint's prefix, as `save` returned it.
            partial: Restores what fits and leaves the other variables as they are.

        Returns:
            What fitted and what did not; None if the saver has no variables.

        Raises:
            NotFoundError: if names are missing; it lists all that does not fit.
            InvalidArgumentError: if there is no such checkpoint, or shapes or dtypes do not fit; it
                lists all.
            DataLossError: if the file is damaged.
        """
        _check_session(sess)
        ops = self._built_ops()
        if ops is None:
            return None
        reader = _reader(save_path)
        report = compare(reader, ops.requirements, self._reshape)
        if report.is_complete:
            sess.run(ops.restore_op, {ops.filename: os.fsdecode(save_path)})
        elif partial:
            self._restore_some(sess, ops, reader, report)
        else:
            raise report.error()
        return report

    def _restore_some(
        self, sess: Any, ops: SaverOps, reader: CheckpointReader, report: RestoreReport
    ) -> None:
        fits = set(report.fits)
        lacking = {e.restore_op for e in ops.entries if e.requirement.name not in fits}
        entries = [e for e in ops.entries if e.restore_op not in lacking]
        feeds = {
            tensor: reader.read(e.requirement.name, *(part or (None, None)))
            for e in entries
            for tensor, part in zip(e.values, e.parts, strict=True)
        }
        if entries:
            sess.run([e.restore_op for e in entries], feeds)

    def compare(self, save_path: str | os.PathLike[str]) -> RestoreReport:
        """A report of a checkpoint's values of the saver's variables; changes nothing.

        Raises:
            InvalidArgumentError: if there is no such checkpoint.
            DataLossError: if the file is damaged.
        """
        ops = self._built_ops()
        return compare(_reader(save_path), ops.requirements if ops else (), self._reshape)

    def _built_ops(self) -> SaverOps | None:
        if not self._is_built:
            raise GraphError("the saver has no operations yet: call build() first")
        return self._ops

    # -- which checkpoints ----------------------------------------------------------------------

    @property
    def last_checkpoints(self) -> list[str]:
        """Prefixes of the checkpoints that are kept, the oldest first."""
        return [prefix for prefix, _ in self._kept.kept]

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Sets the checkpoints that are kept, the oldest first: the next ones that may go.

        Raises:
            DTypeError: if they are no list.
        """
        if isinstance(last_checkpoints, str | bytes):
            raise expected_dtype("a list of prefixes", repr(last_checkpoints))
        self.set_last_checkpoints_with_time([(p, float("inf")) for p in last_checkpoints])

    def set_last_checkpoints_with_time(
        self, last_checkpoints_with_time: Sequence[tuple[str, float]]
    ) -> None:
        """Likewise, with the times when they were written, in seconds since 1970."""
        self._kept.kept = [(os.fsdecode(p), float(t)) for p, t in last_checkpoints_with_time]

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Takes up the checkpoints of an earlier process: those of the prefixes that exist."""
        timed = [(p, get_checkpoint_mtimes([p])) for p in checkpoint_paths]
        self.set_last_checkpoints_with_time([(p, times[0]) for p, times in timed if times])

    # -- with the graph -------------------------------------------------------------------------

    def as_saver_def(self) -> SaverDef:
        """The definition by which another saver on the same graph uses the same operations."""
        ops = self._built_ops()
        if ops is None:
            raise InvalidArgumentError("a saver without variables has no operations")
        return ops.definition(self._kept.max_to_keep, self._kept.hours, self._sharded)

    @property
    def saver_def(self) -> SaverDef | None:
        """What `as_saver_def` returns; None for a saver without variables or operations."""
        return None if self._ops is None else self.as_saver_def()

    def to_proto(self, export_scope: str | None = None) -> SaverDef | None:
        """The definition by which another saver on the same graph uses the same operations.

        Args:
            export_scope: A name scope, which is taken off the names. None is returned where the
                saver's operations lie outside.
        """
        found = self.as_saver_def()
        scope = export_scope.rstrip("/") + "/" if export_scope else ""
        names = (found.filename_tensor_name, found.save_tensor_name, found.restore_op_name)
        if not all(n.startswith(scope) for n in names):
            return None
        return found.moved(lambda n: n.removeprefix(scope))

    @staticmethod
    def from_proto(saver_def: SaverDef, import_scope: str | None = None) -> Saver:
        """Returns a saver that uses the operations of another.

        Args:
            saver_def: What `to_proto` returned.
            import_scope: The name scope into which the graph was imported since.
        """
        return Saver(saver_def=saver_def, name=import_scope)

    def export_meta_graph(self, filename: Any = None, collection_list: Any = None,
                          as_text: bool = False, export_scope: str | None = None,
                          clear_devices: bool = False, clear_extraneous_savers: bool = False,
                          strip_default_attrs: bool = False,
                          save_debug_info: bool = False) -> MetaGraphDef:  # fmt: skip
        """Returns the graph with variables, collections and this saver as data, and writes it.

        Args: see `fs.train.export_meta_graph`.
        """
        ops = self._built_ops()
        return export_meta_graph(
            filename,
            saver_def=None if ops is None else self.as_saver_def().facts(),
            collection_list=collection_list,
            as_text=as_text,
            graph=ops.graph if ops else None,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
            save_debug_info=save_debug_info,
        )

    def __repr__(self) -> str:
        count = len(self._ops.entries) if self._ops else 0
        return f"<fs.train.Saver: {count} tensors, {len(self._kept.kept)} checkpoints>"


def _all_saveable() -> list[Any]:
    graph = get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
    return found + graph.get_collection("saveable_objects")


def _check_arguments(builder: Any, write_version: Any, saver_def: Any) -> None:
    refuse("train.Saver", builder=builder, write_version=write_version)
    if saver_def is not None and not isinstance(saver_def, SaverDef):
        raise expected_dtype("a SaverDef as saver_def", repr(saver_def))


def _check_session(sess: Any) -> None:
    if not callable(getattr(sess, "run", None)):
        raise expected_dtype("a session", repr(sess))


def _prefix(sess: Any, save_path: Any, global_step: Any, pads: bool) -> str:
    """Returns "model-1000" of "model" and a step."""
    if not isinstance(save_path, str | bytes | os.PathLike):
        raise expected_dtype("a checkpoint's prefix as save_path", repr(save_path))
    path = os.fsdecode(save_path)
    if global_step is None:
        return path
    step = _step(sess, global_step)
    return f"{path}-{step:08d}" if pads else f"{path}-{step}"


def _step(sess: Any, global_step: Any) -> int:
    """Returns the value of an integer, an array of rank 0, a tensor, a variable, or its name."""
    if isinstance(global_step, Tensor | Variable | str):
        return value_of_step(sess, global_step)
    if isinstance(global_step, np.ndarray) and global_step.ndim == 0:
        global_step = global_step[()]
    if isinstance(global_step, int | np.integer):
        return int(global_step)
    raise expected_dtype("an integer, a tensor or a variable of one", repr(global_step))


def _check_paths(prefix: str, latest_filename: str | None) -> None:
    latest = latest_filename or "checkpoint"
    if os.path.basename(latest) != latest:
        raise expected("latest_filename without a folder", repr(latest))
    if os.path.basename(prefix) in ("", latest):
        raise expected(
            f'the path of a checkpoint such as "model", other than {latest!r}', repr(prefix)
        )


def _is_checkpoint_beside(old: str, prefix: str) -> bool:
    """Whether `old`, which an earlier saver wrote, is a checkpoint in the folder of `prefix`."""
    folders = {os.path.realpath(os.path.dirname(p) or ".") for p in (old, prefix)}
    return len(folders) == 1 and is_written_here(old)


def _reader(save_path: Any) -> CheckpointReader:
    if save_path is None:
        raise expected("a checkpoint's prefix as save_path", "None")
    try:
        return CheckpointReader(save_path)
    except NotFoundError as e:
        raise InvalidArgumentError(e.message) from e


def saver_of(facts: dict[str, Any] | None, find: Callable[[str], Any]) -> Saver | None:
    """Returns the saver that was written with a graph, or else one of all variables, if any.

    Args:
        facts: What the saver wrote about itself, None if there was none.
        find: Returns an operation or tensor of the graph by the name that is written.
    """
    if facts is None:
        return Saver() if _all_saveable() else None
    definition = SaverDef.from_facts(facts)
    saver = Saver(saver_def=definition, defer_build=True)
    saver._ops, saver._is_built = SaverOps.found(definition, find), True
    return saver


def restore_report(save_path: Any, var_list: Any = None) -> RestoreReport:
    """A report of a checkpoint's values of variables, shown as a table; changes nothing.

    Args:
        save_path: A checkpoint's prefix, or a folder whose latest one is meant.
        var_list: Variables, or a dict of them by name; all global variables by default.

    Raises:
        NotFoundError: if there is no such checkpoint.
        DataLossError: if the file is damaged.
    """
    wanted = saved_things(_all_saveable() if var_list is None else var_list)
    needs = [r for s in wanted for r in s.requirements]
    return compare(load_checkpoint(save_path), needs, reshape=False)


__all__ = ["Saver", "restore_report", "saver_of"]
