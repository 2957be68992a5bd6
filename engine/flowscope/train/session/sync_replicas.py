"""`fs.train.SyncReplicasOptimizer`: several clients train one model, an update per round of them.

Each client adds its gradients to accumulators beside the variables, and waits for a token. The
chief's queue runner takes the mean of enough of them, updates the variables and the global step,
and deals out tokens with the new step. A gradient of an older step is dropped: so the slowest are
not waited for where there are more clients than gradients are needed (backup workers).

Source: Chen et al. 2016, "Revisiting Distributed Synchronous SGD"; names, defaults and the order of
what happens are those of TensorFlow 1.15.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from flowscope.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.expected import expected
from flowscope.ops.array.arrays import fill
from flowscope.ops.core.flow import group, no_op
from flowscope.ops.state.containers.accumulators import (
    ConditionalAccumulator,
    SparseConditionalAccumulator,
)
from flowscope.ops.state.containers.queues import FIFOQueue
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.ops.state.variable_lists import global_variables, report_uninitialized_variables
from flowscope.ops.state.variables import Variable
from flowscope.train.input.queue_runner import QueueRunner
from flowscope.train.optimizers.optimizer import Gradient, Optimizer
from flowscope.train.session.hooks.run_hook import SessionRunHook

if TYPE_CHECKING:
    from flowscope.runtime.session.session import Session
    from flowscope.train.input.coordinator import Coordinator
    from flowscope.train.optimizers.moving_averages import ExponentialMovingAverage

__all__ = ["SyncReplicasOptimizer"]


class SyncReplicasOptimizer(Optimizer):
    """Has another optimizer apply the mean of the gradients of several clients.

        optimizer = fs.train.SyncReplicasOptimizer(
            fs.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=3, total_num_replicas=4)
        train_op = optimizer.minimize(loss, global_step=global_step)
        hook = optimizer.make_session_run_hook(is_chief)
        with fs.train.MonitoredTrainingSession(master, is_chief, hooks=[hook]) as session:
            while not session.should_stop():
                session.run(train_op)

    One client is the chief: its hook starts the queue runner that updates the variables. A mean
    does not depend on which client came first (see `fs.ConditionalAccumulator`). A client has its
    step in a local variable of its graph: threads that run one graph share it, and if they do not
    begin rounds together the gradient of one that is overtaken is dropped as an old one.

    Args:
        opt: The optimizer that applies the means.
        replicas_to_aggregate: How many gradients an update takes.
        total_num_replicas: How many clients there are; as many by default. More: the slowest are
            not waited for. Fewer: each is asked several times per update, or `get_init_tokens_op`
            hands out what is missing.
        variable_averages: Averages that follow each update.
        variables_to_average: Of which variables; all that `variable_averages` takes by default.
        use_locking: Updates are always atomic per variable.
        name: Name scope of the accumulators.

    Raises:
        InvalidArgumentError: if a number is less than 1.
        DTypeError: if `opt` is no optimizer.

    Attributes:
        local_step_init_op: Sets this client's step to the global one.
        chief_init_op: Does so, and sets the time stamps of the accumulators: what came before a
            restart of the chief is dropped.
        ready_for_local_init_op: The names of variables without a value, which these need.
    """

    local_step_init_op: Operation
    chief_init_op: Operation
    ready_for_local_init_op: Tensor

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: ExponentialMovingAverage | None = None,
        variables_to_average: Sequence[Variable] | None = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        super().__init__(use_locking, name)
        if not isinstance(opt, Optimizer):
            raise DTypeError(f"expected an optimizer as opt, got {opt!r}")
        total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        if replicas_to_aggregate < 1 or total < 1:
            raise expected("1 or more replicas", f"{replicas_to_aggregate} of {total}")
        self._opt = opt
        self._needed = int(replicas_to_aggregate)
        self._total = int(total)
        self._averages = variable_averages
        self._averaged = variables_to_average
        self._step: Variable | None = None
        self._tokens: FIFOQueue | None = None
        self._runner: QueueRunner | None = None

    def compute_gradients(
        self, *args: Any, **kwargs: Any
    ) -> list[tuple[Gradient | None, Variable]]:
        """Returns (gradient, variable) pairs: those of the other optimizer, with its arguments."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Variable]],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """Returns an operation that adds this client's gradients and waits for a token.

        Args:
            grads_and_vars: What `compute_gradients` returned, perhaps changed.
            global_step: The variable that counts updates; it tells which gradients are stale.
            name: Name of the other optimizer's update.

        Raises:
            InvalidArgumentError: without a global step, or without any gradient.
            FailedPreconditionError: if it was called before.
        """
        pairs = list(grads_and_vars)
        if not any(g is not None for g, _ in pairs):
            raise InvalidArgumentError("no gradients were given for any variable")
        if global_step is None:
            raise InvalidArgumentError("a global_step is needed: it tells which gradients are old")
        if self._tokens is not None:
            raise FailedPreconditionError("apply_gradients was called before: make another one")
        graph = global_step.graph
        self._step = global_step
        local_step = self._local_step(global_step)
        self.local_step_init_op = local_step.assign(global_step).op
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())
        applied: list[Operation] = []
        means: list[tuple[Any, Variable]] = []
        accumulators: list[ConditionalAccumulator | SparseConditionalAccumulator] = []
        with graph.name_scope(self._name):
            for grad, var in pairs:
                with graph.device(var.device):
                    if grad is not None:
                        made = self._accumulate(grad, var, local_step)
                        accumulators.append(made[0])
                        applied.append(made[1])
                        means.append((made[2], var))
                    else:
                        means.append((None, var))
        with graph.device(global_step.device), graph.name_scope(None):
            update = self._opt.apply_gradients(means, global_step, name)
            self._tokens = FIFOQueue(
                -1, [global_step.dtype], [[]], shared_name="sync_token_q", name="sync_token_q"
            )
            with graph.control_dependencies(applied):
                token: Any = self._tokens.dequeue()
            train_op: Operation = local_step.assign(token).op
            with graph.control_dependencies([update]):
                dealt = self._deal(max(self._total, self._needed))
            if self._averages is not None:
                with graph.control_dependencies([dealt]):
                    dealt = self._averages.apply(self._averaged)
            self._runner = QueueRunner(self._tokens, [dealt])
        stamps = []
        for accumulator in accumulators:
            with graph.device(accumulator.accumulator_ref.device):
                stamps.append(accumulator.set_global_step(global_step, name="SetGlobalStep"))
        self.chief_init_op = group(self.local_step_init_op, *stamps)
        return train_op

    def _local_step(self, global_step: Variable) -> Variable:
        """The variable of this client's own step, beside its own operations."""
        with global_step.graph.colocate_with(no_op()):
            return Variable(
                0,
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype,
                name="sync_rep_local_step",
            )

    def _accumulate(
        self, grad: Any, var: Variable, local_step: Variable
    ) -> tuple[ConditionalAccumulator | SparseConditionalAccumulator, Operation, Any]:
        """An accumulator of a variable's gradients, what adds one, and their mean."""
        shared = f"{var.name}/grad_accum"
        if isinstance(grad, IndexedSlices):
            rows = SparseConditionalAccumulator(grad.dtype, shape=(), shared_name=shared)
            added = rows.apply_indexed_slices_grad(grad, local_step)
            return rows, added, rows.take_indexed_slices_grad(self._needed)
        whole = ConditionalAccumulator(grad.dtype, shape=var.shape, shared_name=shared)
        return whole, whole.apply_grad(grad, local_step), whole.take_grad(self._needed)

    def _deal(self, count: int) -> Operation:
        """An operation that puts so many tokens with the global step into the queue."""
        tokens, step = self._applied()
        return tokens.enqueue_many([fill([count], step)])

    def _applied(self) -> tuple[FIFOQueue, Variable]:
        if self._tokens is None or self._step is None:
            raise FailedPreconditionError("call apply_gradients, or minimize, before this")
        return self._tokens, self._step

    def get_chief_queue_runner(self) -> QueueRunner:
        """Returns the runner of the chief, which updates the variables and deals out tokens.

        Raises:
            FailedPreconditionError: before `apply_gradients` was called.
        """
        self._applied()
        assert self._runner is not None
        return self._runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """Returns an operation with which the chief deals out the first tokens.

        Args:
            num_tokens: How many; -1 for `replicas_to_aggregate`.

        Raises:
            FailedPreconditionError: before `apply_gradients` was called.
            InvalidArgumentError: if these are too few for the first update.
        """
        _, step = self._applied()
        missing = self._needed - self._total
        if num_tokens != -1 and num_tokens < missing:
            raise expected(f"{missing} or more tokens for the first update", num_tokens)
        count = self._needed if num_tokens == -1 else num_tokens
        with step.graph.device(step.device), step.graph.name_scope(None):
            return self._deal(count) if count > 0 else no_op(name="no_init_tokens")

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """Returns a hook that sets the steps; the chief's one starts the updates, too.

        Args:
            is_chief: Whether this client is the chief.
            num_tokens: See `get_init_tokens_op`.
        """
        return _SyncReplicasHook(self, is_chief, num_tokens)

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Returns a slot of the other optimizer, None if there is none."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Returns the names of the other optimizer's slots, sorted."""
        return self._opt.get_slot_names()

    def variables(self) -> list[Variable]:
        """Returns the variables that the other optimizer has made in the default graph."""
        return self._opt.variables()

    def tracked_slots(self) -> list[tuple[str, Variable, Variable]]:
        """Returns (slot's name, variable, slot) of the other optimizer."""
        return self._opt.tracked_slots()

    def tracked_non_slots(self) -> dict[str, Variable]:
        """Returns the other optimizer's variables that are no slots, by name."""
        return self._opt.tracked_non_slots()


class _SyncReplicasHook(SessionRunHook):
    """Sets the steps of a new session, and starts the chief's runner."""

    def __init__(self, optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._optimizer = optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens
        self._init: list[Operation] = []

    def begin(self) -> None:
        """Adds what the chief needs to the graph."""
        optimizer = self._optimizer
        runner = optimizer.get_chief_queue_runner()  # raises before apply_gradients
        self._runner = runner if self._is_chief else None
        if self._is_chief:
            self._init = [
                optimizer.chief_init_op,
                optimizer.get_init_tokens_op(self._num_tokens),
            ]
        else:
            self._init = [optimizer.local_step_init_op]

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Sets the steps and deals out the first tokens."""
        missing = session.run(self._optimizer.ready_for_local_init_op)
        if len(missing):
            names = ", ".join(sorted(name.decode() for name in missing))
            raise FailedPreconditionError(
                f"variables have no value, which SyncReplicasOptimizer needs: {names}"
            )
        for op in self._init:
            session.run(op)
        if self._runner is not None:
            self._runner.create_threads(session, coord=coord, daemon=True, start=True)
