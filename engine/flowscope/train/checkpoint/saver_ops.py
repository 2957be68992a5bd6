"""The operations of a saver: made once, or found again in a graph that was read from a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from flowscope.errors import DataLossError, InvalidArgumentError, NotFoundError
from flowscope.graph.constant import constant
from flowscope.graph.graph import Graph
from flowscope.graph.lazy import frozen, mutable
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.serialization.values import read_dims, read_dtype, read_sizes
from flowscope.graph.values.expected import expected
from flowscope.ops.core.flow import group, placeholder_with_default
from flowscope.ops.state.checkpoint_ops import Part, restore, save
from flowscope.train.checkpoint.restore_report import Requirement
from flowscope.train.checkpoint.saveables import AnySaveable, graph_of


@mutable
class SaverDef:
    """What a saver is besides its operations, by names: as data that JSON can hold.

    TensorFlow's message of this name has no `entries`. A saver of a definition without them
    restores all or fails, and cannot say beforehand what a checkpoint lacks.

    Attributes:
        filename_tensor_name: The prefix, to be fed.
        save_tensor_name: What runs the saving.
        restore_op_name: What runs the restoring.
        entries: Per tensor of a checkpoint: its name, dtype and shape, the operation that restores
            it, the tensors that come from the checkpoint, and which parts of the whole they are.
        max_to_keep, keep_checkpoint_every_n_hours, sharded: As of `fs.train.Saver`.
        version: Version of this form.
    """

    filename_tensor_name: str = ""
    save_tensor_name: str = ""
    restore_op_name: str = ""
    entries: Sequence[dict[str, Any]] = ()
    max_to_keep: int | None = 5
    sharded: bool = False
    keep_checkpoint_every_n_hours: float = 10000.0
    version: int = 2

    #: TensorFlow's numbers of versions.
    LEGACY: ClassVar[int] = 0
    V1: ClassVar[int] = 1
    V2: ClassVar[int] = 2

    def facts(self) -> dict[str, Any]:
        """Returns it as a dict of what JSON can hold."""
        return {**vars(self), "entries": list(self.entries)}

    def CopyFrom(self, other: SaverDef) -> None:
        """Takes all facts from `other`."""
        vars(self).update(other.facts())

    def SerializeToString(self) -> bytes:
        """Returns all facts as JSON."""
        return json.dumps(self.facts()).encode()

    @classmethod
    def FromString(cls, serialized: bytes) -> SaverDef:
        """The object that `SerializeToString` has written.

        Raises:
            DataLossError: if it is no JSON.
            InvalidArgumentError: if it does not say what a saver writes about itself.
        """
        try:
            facts = json.loads(serialized)
        except (ValueError, RecursionError) as e:
            raise DataLossError(f"expected a SaverDef's JSON form: {e}") from None
        return cls.from_facts(facts if isinstance(facts, dict) else {"": facts})

    def moved(self, change: Callable[[str], str]) -> SaverDef:
        """Returns it with all names of operations and tensors changed."""
        facts = self.facts()
        for key in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            facts[key] = change(facts[key])
        facts["entries"] = [
            {**e, "restore_op": change(e["restore_op"]), "values": [change(v) for v in e["values"]]}
            for e in self.entries
        ]
        return SaverDef(**facts)

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> SaverDef:
        """The object with these `facts`; raises InvalidArgumentError if there is none."""
        try:
            found = cls(**facts)
        except TypeError as e:
            raise InvalidArgumentError(f"expected what a saver wrote about itself: {e}") from None
        for name, kinds in _KINDS.items():
            value = getattr(found, name)
            if type(value) not in kinds:
                raise expected("what a saver wrote about itself", f"{value!r} as its {name}")
        return found


#: Types of what a saver writes about itself.
_KINDS: dict[str, tuple[type, ...]] = {
    "filename_tensor_name": (str,),
    "save_tensor_name": (str,),
    "restore_op_name": (str,),
    "entries": (list, tuple),
    "max_to_keep": (int, type(None)),
    "sharded": (bool,),
    "keep_checkpoint_every_n_hours": (int, float),
    "version": (int,),
}


@frozen
class Entry:
    """One tensor of a checkpoint: what is wanted, what restores it, and from which tensors."""

    requirement: Requirement
    restore_op: Operation
    values: tuple[Tensor, ...]
    parts: tuple[Part, ...]

    def facts(self) -> dict[str, Any]:
        """Returns it as a dict of what JSON can hold."""
        shape = self.requirement.shape
        return {
            "name": self.requirement.name,
            "dtype": str(self.requirement.dtype),
            "shape": None if shape is None else list(shape),
            "restore_op": self.restore_op.name,
            "values": [t.name for t in self.values],
            "parts": [None if p is None else [list(p[0]), list(p[1])] for p in self.parts],
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], find: Callable[[str], Any]) -> Entry:
        """The object with these `facts`."""
        match facts:
            case {
                "name": str(name), "dtype": str(dtype), "shape": shape, "restore_op": str(restore),
                "values": [*values], "parts": [*parts],
            } if len(values) == len(parts):  # fmt: skip
                requirement = Requirement(name, read_dtype(dtype), read_dims(shape))
                tensors = tuple([_named(find, v, Tensor) for v in values])
                return cls(
                    requirement, _named(find, restore, Operation), tensors, tuple(map(_part, parts))
                )
        raise expected("a tensor of a saver", repr(facts))


def _part(written: Any) -> Part:
    if written is None:
        return None
    match written:
        case [offset, shape]:
            return read_sizes(offset), read_sizes(shape)
    raise expected("the place of a part", repr(written))


def _named(find: Callable[[str], Any], name: Any, kind: type) -> Any:
    """Returns the operation or tensor that a saver wrote about."""
    try:
        found = find(name) if isinstance(name, str) else None
    except NotFoundError as e:
        raise InvalidArgumentError(f"what a saver wrote is of another graph: {e.message}") from e
    if isinstance(found, kind):
        return found
    raise expected(f"the name of a {kind.__name__} of the saver's graph", repr(name))


@frozen
class SaverOps:
    """A saver's operations.

    Attributes:
        filename: The checkpoint's prefix, to be fed.
        save_tensor: Running it writes the checkpoint.
        restore_op: Running it sets all variables.
        entries: What is in a checkpoint.
    """

    filename: Tensor
    save_tensor: Tensor
    restore_op: Operation
    entries: tuple[Entry, ...]

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.filename.graph

    @property
    def requirements(self) -> list[Requirement]:
        """What is wanted from a checkpoint."""
        return [e.requirement for e in self.entries]

    def definition(self, max_to_keep: int | None, hours: float, sharded: bool) -> SaverDef:
        """Returns all this by names."""
        return SaverDef(
            self.filename.name,
            self.save_tensor.name,
            self.restore_op.name,
            [e.facts() for e in self.entries],
            max_to_keep,
            sharded,
            hours,
        )

    @classmethod
    def found(cls, saver_def: SaverDef, find: Callable[[str], Any]) -> SaverOps:
        """Returns the operations that a saver wrote about.

        Args:
            saver_def: What it wrote.
            find: Returns an operation or tensor of the graph by the name that is written.

        Raises:
            InvalidArgumentError: if what is written is damaged, or the graph lacks one of them.
        """
        return cls(
            _named(find, saver_def.filename_tensor_name, Tensor),
            _named(find, saver_def.save_tensor_name, Tensor),
            _named(find, saver_def.restore_op_name, Operation),
            tuple([Entry.from_facts(e, find) for e in saver_def.entries]),
        )


def build(
    found: Sequence[AnySaveable],
    name: str | None,
    filename: str | None,
    reshape: bool,
    one_by_one: bool,
    as_bundle: bool,
) -> SaverOps:
    """Adds the operations that save and restore to the variables' graph.

    Args:
        found: What is saved.
        name: Name scope; "save" by default.
        filename: Default prefix; "model" by default.
        reshape: Whether a value of another shape but the same size is restored.
        one_by_one: Whether a value is read only when the one before has been assigned.
        as_bundle: Whether checkpoints have TensorFlow's form.
    """
    graph = graph_of(found)
    with graph.as_default(), graph.enter_block(graph.root), graph.name_scope(name or "save"):
        default = constant(filename or "model", name="filename")
        prefix = placeholder_with_default(default, [], name="Const")
        names = [r.name for s in found for r in s.requirements]
        values = [v for s in found for v in s.values()]
        saved = save(prefix, names, values, as_bundle=as_bundle)
        entries: list[Entry] = []
        for chunk in [[s] for s in found] if one_by_one else [list(found)]:
            with graph.control_dependencies([e.restore_op for e in entries[-1:]]):
                entries += _restored(prefix, chunk, reshape)
        done = group(*[e.restore_op for e in entries], name="restore_all")
        return SaverOps(prefix, saved, done, tuple(entries))


def _restored(prefix: Tensor, found: Sequence[AnySaveable], reshape: bool) -> list[Entry]:
    requests = [s.requests(reshape) for s in found]
    names, dtypes, shapes, parts = zip(*[r for rs in requests for r in rs], strict=True)
    values = iter(restore(prefix, names, dtypes, shapes, parts))
    entries = []
    for s, rs in zip(found, requests, strict=True):
        own = [next(values) for _ in rs]
        done = s.restored(own, reshape)
        for wanted in s.requirements:
            mine = [i for i, r in enumerate(rs) if r[0] == wanted.name]
            parts = tuple([rs[i][3] for i in mine])
            entries.append(Entry(wanted, done, tuple([own[i] for i in mine]), parts))
    return entries


__all__ = ["Entry", "SaverDef", "SaverOps", "build"]
