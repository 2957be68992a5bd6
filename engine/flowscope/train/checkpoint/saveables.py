"""What savers save: variables by name, those in parts as one tensor of the full shape; tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, is_known
from flowscope.ops.array.joining import concat
from flowscope.ops.array.shaping import reshape
from flowscope.ops.core.flow import group
from flowscope.ops.state.checkpoint_ops import Part
from flowscope.ops.state.partitioned_variable import PartitionedVariable
from flowscope.ops.state.variables import Variable
from flowscope.ops.tables.tables import MutableTable
from flowscope.train.checkpoint.restore_report import Requirement


@frozen
class Saveable:
    """One tensor of a checkpoint: a variable, or the parts of one.

    Attributes:
        name: Its name in the checkpoint.
        parts: The variables, in order along `axis`.
        axis: The axis along which they are parts.
        shape: Shape of the whole.
    """

    name: str
    parts: tuple[Variable, ...]
    axis: int
    shape: Dims

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.parts[0].dtype

    @property
    def requirements(self) -> list[Requirement]:
        """What it needs from a checkpoint."""
        return [Requirement(self.name, self.dtype, self.shape)]

    def values(self) -> list[Tensor]:
        """Returns the whole value, alone in a list."""
        reads = [v.value() for v in self.parts]
        return reads if len(reads) == 1 else [concat(reads, self.axis)]

    def requests(self, reshape: bool) -> list[tuple[str, DType, Dims, Part]]:
        """Returns (name, dtype, shape, part) of what each part needs from a checkpoint.

        Args:
            reshape: Whether another shape of the same size will do.
        """
        if len(self.parts) == 1:
            return [(self.name, self.dtype, None if reshape else self.shape, None)]
        return [(self.name, self.dtype, v.shape._dims, _place(v)) for v in self.parts]

    def restored(self, values: Sequence[Tensor], reshape: bool) -> Operation:
        """Returns the operation that sets the variables to values from a checkpoint."""
        fit = reshape and len(self.parts) == 1
        assigned = [
            v.assign(_fitted(x, v) if fit else x, name="Assign", read_value=False)
            for v, x in zip(self.parts, values, strict=True)
        ]
        return assigned[0] if len(assigned) == 1 else group(*assigned)


@frozen
class SaveableTable:
    """Two tensors of a checkpoint: the keys and the values of a table.

    Attributes:
        name: What their names in the checkpoint begin with.
        parts: The table, alone.
    """

    name: str
    parts: tuple[MutableTable]

    @property
    def requirements(self) -> list[Requirement]:
        """What it needs from a checkpoint."""
        names = f"{self.name}-keys", f"{self.name}-values"
        return [Requirement(n, *spec) for n, spec in zip(names, self.parts[0].entry_specs)]

    def values(self) -> list[Tensor]:
        """Returns keys and values."""
        return list(self.parts[0].export())

    def requests(self, reshape: bool) -> list[tuple[str, DType, Dims, Part]]:
        """Returns (name, dtype, shape, part) of what it needs from a checkpoint."""
        return [(r.name, r.dtype, r.shape, None) for r in self.requirements]

    def restored(self, values: Sequence[Tensor], reshape: bool) -> Operation:
        """Returns the operation that sets the table to keys and values from a checkpoint."""
        return self.parts[0].restored(*values)


class SaveableObject:
    """One tensor of a checkpoint that is no variable: the position of an iterator, say.

    Args:
        name: Its name in the checkpoint.
        owner: The tensor of the graph that stands for the object.
        dtype, shape: Those of its tensor.

    Attributes:
        name: As above.
        parts: The owner, alone.
    """

    def __init__(self, name: str, owner: Tensor, dtype: DType, shape: Dims) -> None:
        self.name = name
        self.parts = (owner,)
        self._spec = dtype, shape

    @property
    def requirements(self) -> list[Requirement]:
        """What it needs from a checkpoint."""
        return [Requirement(self.name, *self._spec)]

    def values(self) -> list[Tensor]:
        """Returns the tensor to save, alone in a list."""
        raise NotImplementedError

    def requests(self, reshape: bool) -> list[tuple[str, DType, Dims, Part]]:
        """Returns (name, dtype, shape, part) of the tensor, alone in a list."""
        return [(self.name, *self._spec, None)]

    def restored(self, values: Sequence[Tensor], reshape: bool) -> Operation:
        """Returns the operation that sets the object to a tensor of a checkpoint."""
        raise NotImplementedError


#: All that savers save.
AnySaveable = Saveable | SaveableTable | SaveableObject


def _fitted(value: Tensor, variable: Variable) -> Tensor:
    dims = variable.shape._dims
    if dims is None or not is_known(dims):
        return value
    return reshape(value, [int(d) for d in dims if d is not None])


def _place(variable: Variable) -> Part:
    info = variable._save_slice_info
    return None if info is None else (tuple(info.var_offset), tuple(info.var_shape))


def saveables(var_list: Any) -> list[Saveable]:
    """The variables of a `var_list`, a list or a dict by name, by name; see `saved_things`.

    Raises:
        DTypeError: if something in it is no variable.
        InvalidArgumentError: if two have one name, or a part of a variable lacks the others.
    """
    found: dict[str, list[Variable]] = {}
    if isinstance(var_list, Mapping):
        for name, value in var_list.items():
            if not isinstance(name, str):
                raise expected_dtype("names as keys of var_list", repr(name))
            found[name] = _variables(value)
        _refuse_two_names(found)
    elif isinstance(var_list, str | Variable) or not isinstance(var_list, Iterable):
        raise expected_dtype("a list or a dict of variables", repr(var_list))
    else:
        for value in var_list:
            for v in _variables(value):
                _add(found, v)
    return [_saveable(name, parts) for name, parts in sorted(found.items())]


def saved_things(var_list: Any) -> list[AnySaveable]:
    """The variables, tables and objects of a saver's `var_list`, a list or a dict, by name.

    Raises:
        DTypeError: if something in it is none of these.
        InvalidArgumentError: if two have one name, or a part of a variable lacks the others.
    """
    objects: list[SaveableObject] = []
    if isinstance(var_list, Mapping):
        others: Any = {n: v for n, v in var_list.items() if not isinstance(v, MutableTable)}
        tables = [(n, v) for n, v in var_list.items() if isinstance(v, MutableTable)]
    elif isinstance(var_list, Iterable) and not isinstance(var_list, str | Variable):
        objects = [v for v in var_list if isinstance(v, SaveableObject)]
        listed = [v for v in var_list if not isinstance(v, SaveableObject)]
        others = [v for v in listed if not isinstance(v, MutableTable)]
        found = [v for v in listed if isinstance(v, MutableTable)]
        tables = [(v.resource_handle.op.name, v) for v in found]
    else:
        others, tables = var_list, []
    made: list[AnySaveable] = [
        *saveables(others),
        *objects,
        *[SaveableTable(name, (table,)) for name, table in tables],
    ]
    names = [r.name for s in made for r in s.requirements]
    double = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if double is not None:
        raise InvalidArgumentError(f'two things would be saved as "{double}"')
    return sorted(made, key=lambda s: s.name)


def _refuse_two_names(found: Mapping[str, list[Variable]]) -> None:
    names: dict[Variable, str] = {}
    for name, variables in found.items():
        for v in variables:
            if names.setdefault(v, name) != name:
                raise InvalidArgumentError(
                    f'"{v.name}" would be restored from two names: {names[v]!r} and {name!r}'
                )


def _variables(value: Any) -> list[Variable]:
    if isinstance(value, Variable):
        return [value]
    if isinstance(value, PartitionedVariable | list | tuple):
        parts = list(value)
        if parts and all(isinstance(v, Variable) for v in parts):
            return parts
    raise expected_dtype("variables to save", repr(value))


def _add(found: dict[str, list[Variable]], variable: Variable) -> None:
    info = variable._save_slice_info
    name = variable.op.name if info is None else info.full_name
    others = found.setdefault(name, [])
    if variable in others:
        raise InvalidArgumentError(f'"{variable.name}" stands twice in the list to save')
    if others and (info is None or others[0]._save_slice_info is None):
        raise InvalidArgumentError(f'two variables would be saved as "{name}"')
    others.append(variable)


def _saveable(name: str, parts: list[Variable]) -> Saveable:
    infos = [v._save_slice_info for v in parts]
    if len(parts) == 1 and (infos[0] is None or list(infos[0].full_shape) == list(parts[0].shape)):
        one = parts[0]
        dims = None if one.graph.is_reshaped(one.op) else one.shape._dims
        return Saveable(name, tuple(parts), 0, dims)
    if any(i is None for i in infos):
        raise InvalidArgumentError(
            f'several variables would be saved as "{name}" which are no parts of one: '
            + ", ".join(v.name for v in parts)
        )
    return _in_parts(name, parts)


def _in_parts(name: str, parts: list[Variable]) -> Saveable:
    placed = [(v, i) for v in parts if (i := v._save_slice_info) is not None]
    placed.sort(key=lambda pair: list(pair[1].var_offset))
    whole = list(placed[0][1].full_shape)
    cut = [a for a in range(len(whole)) if any(i.var_shape[a] != whole[a] for _, i in placed)]
    axis = cut[0] if cut else 0
    at = 0
    for _, info in placed:
        if list(info.full_shape) == whole and info.var_offset[axis] == at and len(cut) == 1:
            at += info.var_shape[axis]
    if at != whole[axis]:
        raise InvalidArgumentError(
            f'the parts of "{name}" do not make up the whole of shape {whole}: '
            + ", ".join(f"{v.name} ({i.spec})" for v, i in placed)
        )
    return Saveable(name, tuple([v for v, _ in placed]), axis, tuple(whole))


def graph_of(found: Sequence[AnySaveable]) -> Any:
    """Returns the graph of the variables; raises InvalidArgumentError if there are several."""
    parts: list[Any] = [part for s in found for part in s.parts]
    graphs = {part.graph for part in parts}
    if len(graphs) > 1:
        raise expected("variables of one graph", "several graphs")
    return next(iter(graphs), None)


__all__ = [
    "AnySaveable",
    "Saveable",
    "SaveableObject",
    "SaveableTable",
    "graph_of",
    "saveables",
    "saved_things",
]
