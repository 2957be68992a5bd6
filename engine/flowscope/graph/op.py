"""What an op is: one frozen dataclass with its shapes, gradient, kernel, cost and flags.

An op's class is defined once and registers itself. Its fields are its attributes, so equality,
hash, repr and the written form come free. An `Op` object is immutable and holds no state; an
`Operation` (see `flowscope.graph.operation`) is one use of it in a graph.

    class Negative(Op):
        '''-x, element by element.'''

        def infer(self, x: Spec) -> Spec:
            return x.like()

        def grad(self, g: Tensor, y: Tensor, x: Tensor) -> tuple[Tensor | None, ...]:
            return (negative(g),)

        def kernel(self, xp: ArrayModule, x: Array) -> Array:
            return xp.negative(x)

        template = "-{0}"

One with attributes is decorated by `frozen`, or by `dataclass(frozen=True)`, which does the same
at once.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

from flowscope.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    UnsupportedGradientError,
)
from flowscope.graph import providers
from flowscope.graph.lazy import Immutable, frozen as frozen
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expression import FIRST, Expression, parsed
from flowscope.graph.values.shapes import MAX_RANK, Dims, is_known, size_of, text
from flowscope.graph.values.work import Work

if TYPE_CHECKING:
    import numpy as np

    from flowscope.graph.operation import Tensor

#: An array of the device's array module, or a NumPy scalar where the rank is 0.
Array = Any
#: NumPy or CuPy.
ArrayModule = Any
#: What an op's `infer` may return: one Spec, or one per output.
Specs = "Spec | tuple[Spec, ...]"


class Spec:
    """What is known about a tensor before the step runs. Immutable.

    Attributes:
        dtype: Element type.
        shape: `Dims`: a tuple with None for unknown dimensions, or None for an unknown rank.
        constant: The value as a NumPy array or scalar, where it is known; else None. Read-only.
        dims: For integer vectors that stand for a shape (and integer scalars that stand for a
            dimension, as a tuple of one): what is known of their values; else None.
        variable: For a `resource` handle: the Spec of the variable's value; for a `variant`: the
            Spec of its elements; else None.
    """

    __slots__ = ("constant", "dims", "dtype", "shape", "variable")

    def __init__(
        self,
        dtype: DType,
        shape: Dims,
        constant: np.ndarray[Any, Any] | np.generic | None = None,
        dims: Dims = None,
        variable: Spec | None = None,
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.constant = constant
        self.dims = dims
        self.variable = variable

    def like(self, dtype: DType | None = None) -> Spec:
        """Returns a Spec of the same shape, its value unknown."""
        return Spec(dtype or self.dtype, self.shape)

    @property
    def rank(self) -> int | None:
        """The rank, None if unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def nbytes(self) -> int | None:
        """Bytes of a value, None if not known."""
        n = size_of(self.shape)
        return None if n is None else n * self.dtype.size

    @property
    def is_static(self) -> bool:
        """Whether the shape is fully known."""
        return is_known(self.shape)

    def shape_value(self) -> Dims:
        """What is known of the shape that this integer vector stands for (None: nothing)."""
        if self.constant is not None:
            flat = self.constant.reshape(-1).tolist()
            return tuple(None if d < 0 else d for d in flat)
        if self.dims is not None:
            return self.dims
        if self.shape is not None and len(self.shape) == 1 and self.shape[0] is not None:
            # A longer vector is no shape, and may be long enough to fill the memory.
            return (None,) * self.shape[0] if self.shape[0] <= MAX_RANK else None
        return None

    def __str__(self) -> str:
        return f"{self.dtype}{text(self.shape)}"

    __repr__ = __str__


#: The most outputs that an operation can have.
MAX_OUTPUTS = 1 << 16
#: Whether a value lies in the host's memory though its device has another; of a list of lists that
#: lie apart, this of each.
Memory = bool | tuple["Memory", ...]
#: For `Op.host_inputs`: all inputs, and all but the first.
FROM_0, FROM_1 = range(MAX_OUTPUTS), range(1, MAX_OUTPUTS)


def check_outputs(count: int) -> None:
    """Raises InvalidArgumentError for a number of outputs that no operation can have."""
    if not 0 <= count <= MAX_OUTPUTS:
        raise InvalidArgumentError(f"expected 0 to {MAX_OUTPUTS} outputs, got {count}")


@dataclasses.dataclass(frozen=True)
class Cost:
    """A first guess of what one invocation costs; None where shapes are unknown."""

    flops: float | None
    #: Bytes read and written.
    nbytes: float | None


_arriving: ContextVar[bool] = ContextVar("_arriving", default=False)


@contextmanager
def arriving() -> Iterator[None]:
    """While it is entered, this thread takes definitions from another process, which has them.

    What they register by name is not refused: a worker gets op types from several clients, and from
    each of them again when they were edited. Programs that were sent hold their op types
    themselves.
    """
    before = _arriving.set(True)
    try:
        yield
    finally:
        _arriving.reset(before)


def is_arriving() -> bool:
    """Whether what is defined now comes from another process; see `arriving`."""
    return _arriving.get()


@functools.cache
def _positions(declared: tuple[int, ...] | range, count: int) -> frozenset[int]:
    return frozenset(i for i in range(count) if i in declared)


@functools.cache
def _compared(cls: type[Op]) -> Callable[[Op], Any]:
    """A getter of the attributes by which two ops of a class are compared."""
    names = [f.name for f in dataclasses.fields(cls) if f.compare]
    return operator.attrgetter(*names) if names else lambda op: ()


def _is_declared(cls: type, name: str) -> bool:
    """Whether a base of an op class names a class attribute that has no value of its own there."""
    return any(name in inspect.get_annotations(base) for base in cls.__mro__[1:])


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Op(Immutable):
    """Base class of all ops; subclasses are frozen dataclasses with a docstring.

    One without attributes is a frozen dataclass already, and needs no decorator.

    Facts about a class are class attributes. They are given as keywords where it is defined, and
    one that no base knows is refused: `class Abs(Op, memory_order="K", grad_reads=("x",))`.

    Class attributes:
        template: Python expression that generated code inlines in place of a kernel call, e.g.
            "{0} + {1}"; `xp` is the array module. Equal to `kernel`, bit by bit. What is generated
            is printed from `expression`, which the class makes of it; see
            `flowscope.graph.values.expression`.
        scalar_template: The same for inputs of which all are numeric and statically rank 0, if
            better; `scalar_expression`.
        on_numbers: Whether the expression (the scalar one, if there is one) gives the same of
            Python's own integers, floats and bools.
        native: Of which form it is in machine code of numbers, where it has no expression, or one
            that is slower there (`plan.codegen.scalar_assembly`); "" for that of its expression.
        commutes: Whether two inputs may change places: the output is the same, bit by bit.
        keeps_finite: Whether outputs are finite where all inputs are.
        may_run_early: Whether, of scalars, it cannot fail and costs next to nothing: it may be
            computed before it is known that its output is needed.
        has_declared_shapes: Whether the user has declared the outputs' shapes: other ones may come.
        work: What its work grows with; None where the bytes that it reads and writes and the
            flops of `cost` say all.
        is_stateful: Reads or writes state: never merged, never folded. Where it takes a resource
            handle its kernel gets the resource object.
        is_random: The kernel takes a counter-based generator after `xp`.
        is_blocking: May wait for another step or device: it has `begin` in place of a kernel, and
            perhaps `attempt`.
        uses_blas: The kernel multiplies matrices: BLAS has one thread while steps with it run.
        calls: How many calls of NumPy's one invocation makes, roughly: what small arrays cost.
        ends_with_step: Of a blocking op: what its `begin` returned is called when the step has
            ended, too, however it ended: nothing is held beyond it.
        is_expanded: Plans put other nodes in its place, see `expand`.
        is_handle: Makes the handle of something that outlives steps: it has no kernel, for the
            session finds what it stands for, see `flowscope.runtime.session.resource_lookup`.
        family: Of a handle: what it stands for, such as "variable", "queue" or "table".
        makes_anew: Of what writes: what it leaves does not depend on what was there before.
        reads_state, writes_state: What a stateful op does to the resources whose handles it takes.
        accepts_empty: Whether it can read a variable that has no value.
        views: Inputs of which an output may share memory.
        host_inputs, host_outputs: Positions of the inputs and outputs that lie in the host's
            memory, whatever device the kernel is for: shapes, axes, indices that steer. A range
            where there may be any number of them: `inputs_on_host` says which there are.
        follows_memory: Hands on what it takes, in whichever memory of its device that lies: see
            `output_memory`.
        memory_order: How arrays lie in memory. Row-major: no stride is smaller than that of a later
            axis, as in C order and in parts of it. "K": new, and in C order where the inputs are
            row-major; where it has a template as well, it is element-wise. "C": in C order; "C2":
            up to rank 2. "R": row-major where the first input is. None: nothing is promised.
            Arrays of a pure op without `views` are new.
        grad_reads: Names of `grad`'s parameters whose *values* the gradient uses ("y" is the
            output; shapes alone do not count).
        passes_slices: Whether `grad` hands on an `IndexedSlices` as it is; others get it dense.
        accumulates: Whether it adds up many elements: those of 16 bits reach the kernel as float32,
            and its results are rounded to 16 bits once, see `kernel_of`.
        needs_shape_only: Whether only the input's shape matters, not its value.
        fills_with: The position of an input, a scalar, whose value every element of the output has;
            None if there is none.
        is_parameter: Stands for an input of a function: its value comes from what runs that.
        makes_back_edge, takes_back_edge: In a loop made by hand, hands a value to the next
            iteration; may take one from the iteration before.
        has_own_gradient: Hands its inputs on, and another gradient back than theirs.
        kernel_inputs: How many inputs the kernel takes, None for all: those behind them matter to
            gradients only and do not run.
        devices: Device types with a kernel.
    """

    template: ClassVar[str | None] = None
    scalar_template: ClassVar[str | None] = None
    expression: ClassVar[Expression | None] = None
    scalar_expression: ClassVar[Expression | None] = None
    on_numbers: ClassVar[bool] = False
    native: ClassVar[str] = ""
    commutes: ClassVar[bool] = False
    keeps_finite: ClassVar[bool] = False
    may_run_early: ClassVar[bool] = False
    has_declared_shapes: ClassVar[bool] = False
    work: ClassVar[Work | None] = None
    memory_order: ClassVar[str | None] = None
    is_stateful: ClassVar[bool] = False
    is_random: ClassVar[bool] = False
    is_blocking: ClassVar[bool] = False
    uses_blas: ClassVar[bool] = False
    calls: ClassVar[int] = 1
    ends_with_step: ClassVar[bool] = False
    is_expanded: ClassVar[bool] = False
    is_handle: ClassVar[bool] = False
    family: ClassVar[str] = ""
    makes_anew: ClassVar[bool] = False
    reads_state: ClassVar[bool] = False
    writes_state: ClassVar[bool] = False
    accepts_empty: ClassVar[bool] = False
    views: ClassVar[tuple[int, ...]] = ()
    host_inputs: ClassVar[tuple[int, ...] | range] = ()
    host_outputs: ClassVar[tuple[int, ...] | range] = ()
    follows_memory: ClassVar[bool] = False
    grad_reads: ClassVar[tuple[str, ...]] = ()
    passes_slices: ClassVar[bool] = False
    accumulates: ClassVar[bool] = False
    needs_shape_only: ClassVar[bool] = False
    fills_with: ClassVar[int | None] = None
    is_parameter: ClassVar[bool] = False
    makes_back_edge: ClassVar[bool] = False
    takes_back_edge: ClassVar[bool] = False
    has_own_gradient: ClassVar[bool] = False
    kernel_inputs: ClassVar[int | None] = None
    devices: ClassVar[tuple[str, ...]] = ("CPU", "GPU")
    is_differentiable: ClassVar[bool] = True
    #: The op type's name: that of the class, unless it says another.
    type: ClassVar[str]

    @property
    def reshapes(self) -> bool:
        """Whether it may give a variable another shape than the static one."""
        return False

    def opened(self) -> Op:
        """Returns the handle of a variable whose static shape is not known; else itself."""
        return self

    def __init_subclass__(cls, abstract: bool = False, **facts: Any) -> None:
        super().__init_subclass__()
        for name, value in facts.items():
            if not hasattr(cls, name) and not _is_declared(cls, name):
                raise TypeError(f"expected a fact that a base of {cls.__name__} knows, got {name}")
            setattr(cls, name, value)
        if "type" not in cls.__dict__:
            cls.type = cls.__name__
        if "template" in cls.__dict__:
            cls.expression = parsed(cls.template) if cls.template else None
        if "scalar_template" in cls.__dict__:
            cls.scalar_expression = parsed(cls.scalar_template) if cls.scalar_template else None
        if abstract:
            return
        if is_arriving():
            _registry.setdefault(cls.__name__, cls)
            return
        if not cls.__doc__ or cls.__doc__.startswith(f"{cls.__name__}("):
            raise InvalidArgumentError(f"op {cls.__name__} needs a docstring")
        known = _registry.get(cls.__name__)
        if known is None and providers.op_types.get(cls.__name__, cls.__module__) != cls.__module__:
            known = find_op_class(cls.__name__)
        if known is not None and (known.__module__, known.__qualname__) != (
            cls.__module__,
            cls.__qualname__,
        ):
            raise AlreadyExistsError(
                f"there is an op named {cls.__name__} already, in {known.__module__}"
            )
        _registry[cls.__name__] = cls

    def __eq__(self, other: object) -> bool:
        cls = type(self)
        if type(other) is not cls:
            return NotImplemented
        get = _compared(cls)  # type: ignore[arg-type]
        return bool(get(self) == get(other))

    def __hash__(self) -> int:
        return hash(_compared(type(self))(self))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        shown = [f.name for f in dataclasses.fields(self) if f.repr]
        return f"{self.type}({', '.join(f'{n}={getattr(self, n)!r}' for n in shown)})"

    def attributes(self) -> dict[str, Any]:
        """The attributes by name."""
        fields = dataclasses.fields(self)
        return {f.name: getattr(self, f.name) for f in fields}

    def infer(self, *inputs: Any) -> Any:
        """Returns the `Spec` of the output, or a tuple of them, for inputs of the given Specs.

        Raises:
            InvalidArgumentError: if the inputs do not fit; the message alone, the graph adds the
                rest.
        """
        raise NotImplementedError

    def grad(self, g: Any, y: Any, *inputs: Any) -> tuple[Tensor | None, ...]:
        """Adds the gradient's operations; returns one cotangent per input, None for "no influence".

        Args:
            g: Cotangent of the output (of several outputs: a tuple, None where nothing arrives).
            y: The output (of several: a tuple).
            inputs: The inputs.
        """
        raise UnsupportedGradientError(
            f"op {self.type} has no gradient; fs.stop_gradient marks a path that needs none"
        )

    def kernel(self, xp: ArrayModule, *inputs: Array) -> Any:
        """Returns the output's value, or a tuple of values, or None for an op without outputs."""
        raise NotImplementedError

    def attempt(self, state: Any, *inputs: Array) -> tuple[Any, ...] | None:
        """Runs a blocking op if it need not wait; returns the outputs' values.

        Args:
            state: What the handle stands for that is the first input.
            inputs: The values of the other inputs.

        Returns:
            None if nothing was done: then `begin` says whether there is a reason to wait, or an
            error.

        Raises:
            OpError: if the inputs do not fit.
        """
        return None

    def begin(self, state: Any, finish: Callable[[Any], None], *inputs: Array) -> Any:
        """Starts a blocking op; returns a function that gives the wait up.

        Args:
            state: What the handle stands for that is the first input.
            finish: To be called exactly once, at once or later, from any thread: with a tuple of
                the outputs' values or with an exception. Not after the wait was given up.
            inputs: The values of the other inputs.

        Raises:
            OpError: if the inputs do not fit; `finish` is not called then.
        """
        raise NotImplementedError

    def failed(self, state: Any, error: BaseException) -> None:
        """Tells a blocking op's state that a step failed in which the op takes part."""

    def expand(
        self,
        xs: Sequence[Any],
        specs: Sequence[Spec],
        wanted: Collection[int],
        add: Callable[[Op, Sequence[Any], str], Any],
    ) -> Mapping[int, Any]:
        """Adds the nodes that plans put in its place; returns the wanted outputs by their indices.

        Args:
            xs: The inputs, as `add` takes them.
            specs: What is known of the inputs.
            wanted: Indices of outputs; the other ones are not used.
            add: Adds a node with one output, and returns that: (op, inputs, the device that it asks
                for, "" for none).
        """
        raise NotImplementedError

    def facts(self, inputs: tuple[Spec, ...]) -> Mapping[str, str]:
        """Facts that views show beside the attributes, by their names.

        Args:
            inputs: What is known of the inputs.
        """
        return {}

    def forwards(self, inputs: tuple[Spec, ...], output: Spec) -> int | None:
        """Returns which input the output equals, bit by bit, whatever its value; None for none."""
        return 0 if self.expression == FIRST and len(inputs) == 1 else None

    @property
    def is_pure(self) -> bool:
        """Whether its outputs follow from its inputs alone: it may be merged, or left out."""
        return not (self.is_stateful or self.is_random or self.is_blocking)

    @property
    def has_effect(self) -> bool:
        """Whether running it does something beyond its outputs."""
        reads_only = self.reads_state and not self.writes_state
        return self.is_blocking or (self.is_stateful and not reads_only)

    def inputs_on_host(self, count: int) -> frozenset[int]:
        """Returns the positions of those of `count` inputs that lie in the host's memory."""
        return _positions(self.host_inputs, count)

    def outputs_on_host(self, count: int) -> frozenset[int]:
        """Returns the positions of those of `count` outputs that lie in the host's memory."""
        return _positions(self.host_outputs, count)

    def output_memory(self, inputs: Sequence[Memory]) -> Memory:
        """Where the output lies, of an op with `follows_memory`: by default as the first input."""
        return inputs[0]

    def cost(self, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> Cost:
        """The flops and bytes of one invocation, by default one flop per element."""
        flops: float | None = 0.0
        nbytes: float | None = 0.0
        for i, spec in enumerate((*outputs, *inputs)):
            size = size_of(spec.shape)
            if i < len(outputs) and flops is not None:
                flops = None if size is None else flops + size
            if nbytes is not None and spec.dtype.kind not in "rsv":
                nbytes = None if size is None else nbytes + size * spec.dtype.size
        return Cost(flops, nbytes)


_registry: dict[str, type[Op]] = {}
#: Kernels that replace `Op.kernel` on one device type: (op type, device type) -> function(op, xp,
#: *inputs).
_kernels: dict[tuple[str, str], Callable[..., Any]] = {}
#: Device types that run the kernels of another one, such as "GPU".
_families: dict[str, str] = {}


def op_class(name: str) -> type[Op]:
    """Returns the op class registered under `name`; raises NotFoundError if there is none."""
    found = find_op_class(name)
    if found is None:
        raise NotFoundError(f"no op type is named {name!r}")
    return found


def find_op_class(name: str) -> type[Op] | None:
    """Returns the op class registered under `name`, None if there is none."""
    found = _registry.get(name)
    if found is None:
        providers.load_op_type(name)
        found = _registry.get(name)
    return found


def all_ops() -> dict[str, type[Op]]:
    """Returns all registered op classes by name, those of families not loaded yet as well."""
    providers.load_op_types()
    return dict(_registry)


def register_kernel(
    op: type[Op], device_type: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: `fn(op, xp, *inputs)` is the kernel of `op` on `device_type` ("CPU", "GPU")."""

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        _kernels[op.__name__, device_type] = fn
        return fn

    return register


def own_kernels(ops: Iterable[type[Op]]) -> dict[tuple[str, str], Callable[..., Any]]:
    """Returns the kernels that are registered for some ops, by op types and device types."""
    names = {op.__name__ for op in ops}
    return {key: kernel for key, kernel in _kernels.items() if key[0] in names}


def take_kernels(kernels: Mapping[tuple[str, str], Callable[..., Any]]) -> None:
    """Registers the kernels of ops that have come from another process; see `own_kernels`."""
    _kernels.update(kernels)


def share_kernels(device_type: str, other: str) -> None:
    """Has devices of a type run the kernels of another one, where they have none of their own."""
    _families[device_type] = other


def _special_kernel(op: Op, device_type: str) -> Callable[..., Any] | None:
    found = _kernels.get((op.type, device_type))
    if found is None and device_type in _families:
        return _kernels.get((op.type, _families[device_type]))
    return found


def has_kernel(op: Op, device_type: str) -> bool:
    """Whether `op` can run on devices of this type."""
    family = _families.get(device_type, device_type)
    return family in op.devices or _special_kernel(op, device_type) is not None


def kernel_of(
    op: Op, device_type: str, inputs: Iterable[Spec] = (), outputs: Iterable[Spec] = ()
) -> Callable[..., Any]:
    """Returns the function `kernel(xp, *inputs)` of `op` on devices of this type.

    Args:
        op: The op.
        device_type: "CPU" or "GPU".
        inputs: What its inputs are; only dtypes count.
        outputs: What its outputs are.
    """
    special = _special_kernel(op, device_type)
    kernel: Callable[..., Any] = op.kernel if special is None else special.__get__(op)
    if op.accumulates and any(s.dtype.is_half for s in inputs):
        return _rounded_once(kernel, [s.dtype.is_half for s in inputs], [s.dtype for s in outputs])
    return kernel


def _rounded_once(
    kernel: Callable[..., Any], halves: list[bool], dtypes: list[DType]
) -> Callable[..., Any]:
    """Returns a kernel that computes in float32 what has 16 bits, and rounds its results once."""

    def wide(xp: ArrayModule, *inputs: Array) -> Any:
        flags = itertools.chain(halves, itertools.repeat(False))
        widened = [x.astype(xp.float32) if half else x for x, half in zip(inputs, flags)]
        found = kernel(xp, *widened)
        if not isinstance(found, tuple):
            return found.astype(dtypes[0].np_dtype, copy=False)
        return tuple([v.astype(d.np_dtype, copy=False) for v, d in zip(found, dtypes, strict=True)])

    return wide


def is_special(op: Op, device_type: str) -> bool:
    """Whether the device type has a kernel of its own, which a template must not replace."""
    return _special_kernel(op, device_type) is not None
