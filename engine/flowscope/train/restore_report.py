"""What a checkpoint holds of what is wanted from it (D24): found out before anything changes."""

from __future__ import annotations

from collections.abc import Iterable

from flowscope.errors import InvalidArgumentError, NotFoundError, OpError
from flowscope.graph.dtypes import DType
from flowscope.graph.lazy import frozen
from flowscope.graph.shapes import Dims, compatible, size_of, text
from flowscope.ops.state.checkpoint_file import CheckpointReader


@frozen
class Wish:
    """What is to be read under a name."""

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
        lines += [self._missing(name, wish) for name, wish in self.missing]
        lines += [f"  shape:    {n}: {w} is wanted, the file has {f}" for n, f, w in self.misshapen]
        lines += [f"  dtype:    {n}: {w} is wanted, the file has {f}" for n, f, w in self.mistyped]
        lines += [f"  not used: {n}: the file has {f}" for n, f in self.extra]
        return "\n".join(lines)

    __repr__ = __str__

    def _missing(self, name: str, wish: str) -> str:
        import difflib  # only where something is missing

        similar = difflib.get_close_matches(name, [n for n, _ in self.extra], 1)
        hint = f'; similar: "{similar[0]}"' if similar else ""
        return f"  missing:  {name}: {wish} is wanted, the file has none{hint}"

    def error(self) -> OpError:
        """Returns the error that says all this: NotFoundError if a name is missing."""
        kind = NotFoundError if self.missing else InvalidArgumentError
        return kind(
            f"{self}\nnothing was restored: restore(..., partial=True) restores what fits; "
            "a dict as var_list gives variables other names"
        )


def compare(reader: CheckpointReader, wishes: Iterable[Wish], reshape: bool) -> RestoreReport:
    """Returns how a checkpoint and wishes fit.

    Args:
        reader: The checkpoint.
        wishes: What is wanted.
        reshape: Whether another shape of the same size will do.
    """
    fits, missing, misshapen, mistyped = [], [], [], []
    shapes = reader.get_variable_to_shape_map()
    wanted = set()
    for wish in wishes:
        wanted.add(wish.name)
        if wish.name not in shapes:
            missing.append((wish.name, str(wish)))
            continue
        shape, dtype = tuple(shapes[wish.name]), reader.dtype(wish.name)
        found = f"{dtype}{text(shape)}"
        if dtype is not wish.dtype:
            mistyped.append((wish.name, found, str(wish)))
        elif compatible(shape, wish.shape) or (reshape and size_of(shape) == size_of(wish.shape)):
            fits.append(wish.name)
        else:
            misshapen.append((wish.name, found, str(wish)))
    extra = [(n, f"{reader.dtype(n)}{text(tuple(s))}") for n, s in shapes.items()]
    return RestoreReport(
        reader.path,
        tuple(fits),
        tuple(missing),
        tuple(misshapen),
        tuple(mistyped),
        tuple([(n, f) for n, f in extra if n not in wanted]),
    )


__all__ = ["RestoreReport", "Wish", "compare"]
