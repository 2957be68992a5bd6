"""Variables that start from the values of a checkpoint: initializers that read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.selection import where_v2
from flowscope.ops.array.shaping import reshape
from flowscope.ops.array.slicing import slice as slice_of
from flowscope.ops.core.build import apply
from flowscope.ops.state.checkpoint_file import CheckpointReader
from flowscope.ops.state.checkpoint_ops import restore
from flowscope.ops.state.initializers import Zeros
from flowscope.ops.state.partitioned_variable import PartitionedVariable
from flowscope.ops.state.variable_lists import (
    global_variables,
    local_variables,
    trainable_variables,
)
from flowscope.ops.state.variable_ops import AssignVariableOp
from flowscope.ops.state.variables import Variable
from flowscope.train.checkpoint.checkpoints import load_checkpoint
from flowscope.train.checkpoint.restore_report import compare
from flowscope.train.checkpoint.saveables import Saveable, saveables


def init_from_checkpoint(ckpt_dir_or_file: str, assignment_map: Any) -> None:
    """Makes the initializers of variables read their values from a checkpoint.

    Nothing is read before an initializer runs; `fs.global_variables_initializer` must be called
    after this. The dict {"old/w": w} names single variables; {"old/": "new/"} all variables of a
    name scope, which the checkpoint has under another one, and "/" stands for its root.

    Args:
        ckpt_dir_or_file: The checkpoint's prefix, or a folder whose latest one is meant.
        assignment_map: A dict, or a list of pairs: names in the checkpoint, and for each a
            variable, a list of the parts of one, its name in the default graph, or a name scope.

    Raises:
        NotFoundError: if there is no such checkpoint.
        InvalidArgumentError: if a variable, or its tensor in the checkpoint, is missing, or if
            dtypes or shapes differ; the error lists all, and no initializer is changed.
    """
    reader = load_checkpoint(ckpt_dir_or_file)
    is_map = isinstance(assignment_map, Mapping)
    pairs = list(assignment_map.items() if is_map else assignment_map)
    _start_from(reader, [s for source, target in pairs for s in _assigned(source, target)])


def _start_from(reader: CheckpointReader, found: Sequence[Saveable]) -> None:
    """Gives variables initializers that read them from a checkpoint, if all fit."""
    report = compare(reader, [r for s in found for r in s.requirements], reshape=False)
    if not report.is_complete:
        raise InvalidArgumentError(f"{report}\nno initializer was changed")
    for s in found:
        names, dtypes, shapes, parts = zip(*s.requests(reshape=False), strict=True)
        with s.parts[0].graph.as_default() as graph, graph.enter_block(graph.root):
            values = restore(
                reader.path, names, dtypes, shapes, parts, name="checkpoint_initializer"
            )
        for variable, value in zip(s.parts, values, strict=True):
            _set_initial_value(variable, value)


def _set_initial_value(variable: Variable, value: Tensor) -> None:
    """Makes another tensor the initial value: a new operation is the initializer."""
    with variable.graph.name_scope(variable.op.name + "/"):
        done = apply(AssignVariableOp(), variable.handle, value, name="Assign")
    variable.initial_value, variable.initializer = value, done.op


def _assigned(source: Any, target: Any) -> list[Saveable]:
    """Returns the variables of one pair of an assignment map, under their names in checkpoints."""
    if not isinstance(source, str):
        raise expected_dtype("names in the checkpoint as keys", repr(source))
    if not isinstance(target, str):
        return saveables({source: target})
    by_name = _by_name([*global_variables(), *local_variables()])
    if target in by_name:
        return saveables({source: by_name[target]})
    if not (target.endswith("/") and source.endswith("/")):
        raise expected(
            "the name of a variable, or of scopes as in 'old/': 'new/'", f"{source!r}: {target!r}"
        )
    scope, prefix = target.lstrip("/"), source.lstrip("/")
    inside = {n: v for n, v in by_name.items() if n.startswith(scope)}
    if not inside:
        raise InvalidArgumentError(f"there is no variable in the name scope {target!r}")
    return saveables({prefix + name.removeprefix(scope): v for name, v in inside.items()})


def _by_name(variables: Iterable[Any]) -> dict[str, list[Variable]]:
    """Returns variables, or the parts of one, by the name that savers give them."""
    return {s.name: list(s.parts) for s in saveables(list(dict.fromkeys(variables)))}


# -- with vocabularies ----------------------------------------------------------------------------


@frozen
class VocabInfo:
    """How the rows of a variable, one per word, follow from those of another vocabulary.

    Attributes:
        new_vocab: Path of the new vocabulary: a word per line, in the order of the rows.
        new_vocab_size: How many of its words are used.
        num_oov_buckets: How many rows for other words follow.
        old_vocab: Path of the vocabulary that the checkpoint was trained with.
        old_vocab_size: How many of its words were used; -1 for all.
        backup_initializer: Initializer of the rows of new and other words; zeros by default.
        axis: 0, or 1 where columns stand for words.
    """

    new_vocab: str
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: str
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0

    def __post_init__(self) -> None:
        if self.axis not in (0, 1):
            raise expected("the axis 0 or 1", self.axis)

    def rows(self) -> list[int]:
        """Returns the old row of each new one, -1 where there is none."""
        new = _words(self.new_vocab, self.new_vocab_size)
        old = {word: row for row, word in enumerate(_words(self.old_vocab, self.old_vocab_size))}
        return [old.get(word, -1) for word in new] + [-1] * self.num_oov_buckets


def _words(path: str, size: int) -> list[str]:
    with open(path, encoding="utf-8") as file:
        words = file.read().splitlines()
    if size > len(words):
        raise expected(f'{size} words in "{path}"', len(words))
    return words if size < 0 else words[:size]


def warm_start(
    ckpt_to_initialize_from: str,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Makes the initializers of chosen variables read their values from a checkpoint.

    See `init_from_checkpoint`. A variable with a `VocabInfo` takes the rows of the words that both
    vocabularies have.

    Args:
        ckpt_to_initialize_from: The checkpoint's prefix, or a folder whose latest one is meant.
        vars_to_warm_start: A regular expression over names of trainable variables; a list of such
            over those of global variables; a list of variables; or None for those with a VocabInfo.
        var_name_to_vocab_info: Vocabularies by the name of the variable.
        var_name_to_prev_var_name: Names in the checkpoint, where they differ.

    Raises:
        NotFoundError: if there is no such checkpoint.
        InvalidArgumentError: as `init_from_checkpoint`; and if a name is given for which no
            variable is chosen.
    """
    reader = load_checkpoint(ckpt_to_initialize_from)
    vocabularies = dict(var_name_to_vocab_info or {})
    previous = dict(var_name_to_prev_var_name or {})
    chosen = _by_name(_chosen(vars_to_warm_start))
    unused = sorted((vocabularies.keys() | previous.keys()) - chosen.keys())
    if unused:
        raise expected(f"names of variables that are chosen, {sorted(chosen)}", unused)
    plain = {} if vars_to_warm_start is None else chosen
    _start_from(reader, [
        s for name, parts in plain.items() if name not in vocabularies
        for s in saveables({previous.get(name, name): parts})
    ])  # fmt: skip
    for name, info in vocabularies.items():
        source = saveables({previous.get(name, name): chosen[name]})
        _start_from_words(reader, source[0], info)


def _chosen(given: Any) -> list[Any]:
    """Returns the variables that `vars_to_warm_start` stands for."""
    if given is None or isinstance(given, str):
        return trainable_variables(scope=given)
    if isinstance(given, list | tuple):
        if all(isinstance(v, str) for v in given):
            return [v for scope in given for v in global_variables(scope=scope)]
        if all(isinstance(v, Variable | PartitionedVariable) for v in given):
            return [p for v in given for p in ([v] if isinstance(v, Variable) else v)]
    raise expected_dtype(
        "a regular expression, a list of them or a list of variables as vars_to_warm_start",
        repr(given),
    )


def _start_from_words(reader: CheckpointReader, whole: Saveable, info: VocabInfo) -> None:
    """Gives a variable an initializer that puts the rows of known words in their new places."""
    name, rows = whole.name, info.rows()
    wanted = [None if d is None else int(d) for d in whole.shape or ()]
    old = reader.shape(name) if reader.has_tensor(name) else None
    if old is None or reader.dtype(name) is not whole.dtype:
        report = compare(reader, whole.requirements, reshape=False)
        raise InvalidArgumentError(f"{report}\nno initializer was changed")
    others = (*old[: info.axis], len(rows), *old[info.axis + 1 :])
    if len(old) <= info.axis or not compatible(tuple(wanted), others):
        raise expected(
            f'"{name}" of shape {text(others)}: one row per word along axis {info.axis}',
            tuple(wanted),
        )
    if max(rows, default=-1) >= old[info.axis]:
        raise expected(
            f'at most {old[info.axis]} words in "{info.old_vocab}", one per row of "{name}"',
            max(rows) + 1,
        )
    with whole.parts[0].graph.as_default() as graph, graph.enter_block(graph.root):
        value = _placed(reader, whole, info, rows, others)
        for variable in whole.parts:
            part = variable._save_slice_info
            is_part = len(whole.parts) > 1 and part is not None
            own = slice_of(value, part.var_offset, part.var_shape) if is_part else value  # type: ignore[union-attr]
            _set_initial_value(variable, own)


def _placed(
    reader: CheckpointReader, whole: Saveable, info: VocabInfo, rows: list[int], dims: Any
) -> Tensor:
    """Returns the value of the new variable."""
    (old,) = restore(
        reader.path, [whole.name], [whole.dtype], [tuple(reader.shape(whole.name))],
        name="checkpoint_initializer",
    )  # fmt: skip
    initializer = info.backup_initializer or Zeros()
    backup = initializer(list(dims), dtype=whole.dtype)
    if not any(row >= 0 for row in rows):
        return backup
    along = [-1 if i == info.axis else 1 for i in range(len(dims))]
    is_known = reshape([row >= 0 for row in rows], along)
    return where_v2(is_known, gather(old, [max(row, 0) for row in rows], axis=info.axis), backup)


__all__ = ["VocabInfo", "init_from_checkpoint", "warm_start"]
