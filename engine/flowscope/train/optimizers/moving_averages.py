"""Moving averages of variables and tensors: slow copies, often better than the last values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.expected import expected_dtype
from flowscope.ops.array.arrays import zeros
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import group
from flowscope.ops.math.elementwise import minimum, pow as power
from flowscope.ops.state.variable_lists import global_variables, trainable_variables
from flowscope.ops.state.variables import (
    GraphKeys,
    Variable,
)
from flowscope.train.optimizers.groups import join_group
from flowscope.train.optimizers.slots import make_slot, slot_name

#: A variable, or a tensor.
Averaged = Variable | Tensor


class ExponentialMovingAverage:
    """Keeps average = decay * average + (1 - decay) * value for variables and tensors.

    The average of a variable starts from its initial value, that of a tensor from 0.

    Args:
        decay: A number below 1, usually near it, or a scalar tensor.
        num_updates: A step count: the decay is then min(decay, (1 + n) / (10 + n)), so that
            averages move faster in the beginning.
        zero_debias: Whether to correct averages of tensors for their start from 0.
        name: What averages are called: "w/<name>".
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Averaged, Variable] = {}

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    def apply(self, var_list: Sequence[Averaged] | None = None) -> Operation:
        """Returns an operation that moves the averages once; makes them on first use.

        All averages move or, if the step is stopped, none.

        Args:
            var_list: Variables and tensors; all trainable variables by default.

        Raises:
            DTypeError: if something else is given, or something without floats.
        """
        averaged = list(trainable_variables() if var_list is None else var_list)
        for v in averaged:
            _check(v)
        graph = averaged[0].graph if averaged else get_default_graph()
        with graph.control_dependencies(None):
            averages = [self._average_of(v) for v in averaged]
        before = len(graph)
        with graph.name_scope(self._name) as scope:
            decay = self._decay_now()
            updates = [self._moved(a, v, decay) for a, v in zip(averages, averaged, strict=True)]
            done = group(*updates, name=scope)
        join_group(graph.operations_since(before), scope.rstrip("/"))
        return done

    def average(self, var: Averaged) -> Variable | None:
        """Returns the average's variable, None if there is none."""
        return self._averages.get(var)

    def average_name(self, var: Averaged) -> str:
        """Returns the name of the average's variable, also before `apply` has made it."""
        found = self._averages.get(var)
        if found is not None:
            return found.op.name
        return var.graph.unique_name(f"{var.op.name}/{self._name}", mark_as_used=False)

    def variables_to_restore(
        self, moving_avg_variables: Iterable[Variable] | None = None
    ) -> dict[str, Variable]:
        """Returns all variables by the names under which a saver finds what to load into them.

        That is the average's name for a variable that has one, and its own for all others.

        Args:
            moving_avg_variables: Those that have averages; by default the trainable ones and
                those that an average was kept of.
        """
        if moving_avg_variables is None:
            moving_avg_variables = [*trainable_variables(), *moving_average_variables()]
        with_average = dict.fromkeys(moving_avg_variables)
        names = {self.average_name(v): v for v in with_average}
        for v in global_variables():
            if v not in with_average:
                names.setdefault(v.op.name, v)
        return names

    def _average_of(self, var: Averaged) -> Variable:
        if var in self._averages:
            return self._averages[var]
        if isinstance(var, Variable):
            made = make_slot(var, var.initialized_value, self._name)
            var.graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
        else:
            made = _from_zero(var, slot_name(var, self._name))
        self._averages[var] = made
        return made

    def _decay_now(self) -> Tensor:
        decay = convert_to_tensor(self._decay, name="decay")
        if self._num_updates is None:
            return decay
        count = cast(convert_to_tensor(self._num_updates), decay.dtype)
        return minimum(decay, (1.0 + count) / (10.0 + count))

    def _moved(self, average: Variable, var: Averaged, decay: Tensor) -> Operation:
        graph = average.graph
        with graph.name_scope("AssignMovingAvg"), graph.colocate_with(average.op):
            share = cast(1.0 - decay, average.dtype)
            value = convert_to_tensor(var)
            if self._zero_debias and not isinstance(var, Variable):
                return _debiased(average, value, share)
            delta = (average.value() - value) * share
            return average.assign_sub(delta, read_value=False)  # type: ignore[no-any-return]


def moving_average_variables(scope: str | None = None) -> list[Variable]:
    """Returns the variables of which averages are kept."""
    graph = get_default_graph()
    return graph.get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def _check(v: Any) -> None:
    if not isinstance(v, Variable | Tensor):
        raise expected_dtype("variables and tensors to average", repr(v))
    if not v.dtype.is_floating:
        raise expected_dtype("floats to average", f'{v.dtype} from "{v.name}"')


def _from_zero(tensor: Tensor, name: str) -> Variable:
    """Returns a new variable of zeros of a tensor's shape, which must be known."""
    with tensor.graph.name_scope(None):
        shape, dtype = tensor.shape, tensor.dtype
        return Variable(lambda: zeros(shape, dtype), trainable=False, name=name)


def _debiased(average: Variable, value: Tensor, share: Tensor) -> Operation:
    """Moves an average that started from 0, divided by the share of it that is not the start.

    Source: Kingma & Ba 2014, section 3.
    """
    biased = _companion(average, "biased", average.shape)
    local_step = _companion(average, "local_step", [])
    moved = biased.assign_sub((biased.value() - value) * share)
    count = local_step.assign_add(1.0)
    return average.assign(  # type: ignore[no-any-return]
        moved / (1.0 - power(1.0 - share, count)), read_value=False
    )


def _companion(average: Variable, name: str, shape: Any) -> Variable:
    """Returns the variable "<average's name>/<name>" of zeros, made on first use."""
    wanted = f"{average.op.name}/{name}"
    for v in average.graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
        if v.op.name == wanted:
            return v  # type: ignore[no-any-return]
    with average.graph.control_dependencies(None), average.graph.name_scope(None):
        dtype = average.dtype
        return Variable(lambda: zeros(shape, dtype), trainable=False, name=wanted)


__all__ = ["ExponentialMovingAverage", "moving_average_variables"]
