"""What a checkpoint holds of what is wanted from it (D24): found out before anything changes."""

from __future__ import annotations

from collections.abc import Iterable

from flowscope.errors import InvalidArgumentError, NotFoundError, OpError
from flowscope.graph.lazy import frozen
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.shapes import Dims, compatible, size_of, text
from flowscope.ops.state.checkpoint_file import CheckpointReader


@frozen
class Requirement:
    """What a checkpoint must have under a name: dtype and shape."""

    name: str
    dtype: DType
    shape: Dims

    def __str__(self) -> str:
        return f"{self.dtype}{text(self.shape)}"


@frozen
class RestoreReport:
    """What fits and what does not.

    Attributes:
        path: The checkpoint's file.
        fits: Names that can be restored.
        missing: Names that the file lacks, with what is wanted.
        misshapen: (name, shape and dtype in the file, what is wanted).
        mistyped: Likewise, where the dtypes differ.
        extra: Names that nobody wants, with what the file has.
    """

    path: str
    fits: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]
    misshapen: tuple[tuple[str, str, str], ...]
    mistyped: tuple[tuple[str, str, str], ...]
    extra: tuple[tuple[str, str], ...]

    @property
    def is_complete(self) -> bool:
        """Whether all that is wanted can be restored."""
        return not (self.missing or self.misshapen or self.mistyped)

    def __str__(self) -> str:
        wanted = len(self.fits) + len(self.missing) + len(self.misshapen) + len(self.mistyped)
        lines = [f'{len(self.fits)} of {wanted} tensors can be restored from "{self.path}"']
        lines += [self._missing(name, requirement) for name, requirement in self.missing]
        lines += [f"  shape:    {n}: {w} is wanted, the file has {f}" for n, f, w in self.misshapen]
        lines += [f"  dtype:    {n}: {w} is wanted, the file has {f}" for n, f, w in self.mistyped]
        lines += [f"  not used: {n}: the file has {f}" for n, f in self.extra]
        return "\n".join(lines)

    __repr__ = __str__

    def _missing(self, name: str, requirement: str) -> str:
        import difflib  # only where something is missing

        similar = difflib.get_close_matches(name, [n for n, _ in self.extra], 1)
        hint = f'; similar: "{similar[0]}"' if similar else ""
        return f"  missing:  {name}: {requirement} is wanted, the file has none{hint}"

    def error(self) -> OpError:
        """Returns the error that says all this: NotFoundError if a name is missing."""
        kind = NotFoundError if self.missing else InvalidArgumentError
        return kind(
            f"{self}\nnothing was restored: restore(..., partial=True) restores what fits; "
            "a dict as var_list gives variables other names"
        )


def compare(
    reader: CheckpointReader, requirements: Iterable[Requirement], reshape: bool
) -> RestoreReport:
    """Returns how a checkpoint and requirements fit.

    Args:
        reader: The checkpoint.
        requirements: What is wanted.
        reshape: Whether another shape of the same size will do.
    """
    fits, missing, misshapen, mistyped = [], [], [], []
    shapes = reader.get_variable_to_shape_map()
    wanted = set()
    for requirement in requirements:
        wanted.add(requirement.name)
        if requirement.name not in shapes:
            missing.append((requirement.name, str(requirement)))
            continue
        shape, dtype = tuple(shapes[requirement.name]), reader.dtype(requirement.name)
        found = f"{dtype}{text(shape)}"
        if dtype is not requirement.dtype:
            mistyped.append((requirement.name, found, str(requirement)))
        elif compatible(shape, requirement.shape) or (
            reshape and size_of(shape) == size_of(requirement.shape)
        ):
            fits.append(requirement.name)
        else:
            misshapen.append((requirement.name, found, str(requirement)))
    extra = [(n, f"{reader.dtype(n)}{text(tuple(s))}") for n, s in shapes.items()]
    return RestoreReport(
        reader.path,
        tuple(fits),
        tuple(missing),
        tuple(misshapen),
        tuple(mistyped),
        tuple([(n, f) for n, f in extra if n not in wanted]),
    )


__all__ = ["Requirement", "RestoreReport", "compare"]
