"""Loops of single numbers as machine code, which takes over from Python while a loop runs.

Generated code asks at the end of an iteration, so many iterations into a loop, see
`flowscope.plan.codegen.native_hooks`. The first to ask has a thread compile the loop; nobody waits
for that. Once there is code it goes on from there, and gives the loop back between two iterations:
when the condition is false, where the next iteration would fail, and every few milliseconds, for
Python's handlers of signals do not run meanwhile and whoever pauses, stops or looks waits for the
safepoint. Python's code runs the next iteration itself, with all that may happen there.

A call that is over soon keeps the interpreter's lock: giving it away and taking it back may take
longer than the loop. What takes longer goes on without it.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import struct
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from flowscope.errors import UnimplementedError
from flowscope.plan.ir.structured import LoopNode

if TYPE_CHECKING:
    from flowscope.plan.codegen.loop_assembly import LoopText

#: Iterations in one run of a loop after which it is compiled; each run asks for one less.
_HOT, _LEAST_HOT = 200, 8
#: Iterations after which Python's code asks again whether there is machine code.
_AGAIN = 100
#: Operations of a call that keeps the interpreter's lock.
_SHORT = 20_000
#: Seconds that a call without it takes at most, roughly.
_CALL_S = 0.005
_FIRST, _MOST = 1 << 16, 1 << 50
#: A loop inside of an iteration may use up so many times the budget before that is given up.
_FLOOR = 3
#: Iterations that are left to Python at most where those that come next are given back at once.
_MOST_LEFT = 64
#: Compiled loops that are kept, by their assembly.
_KEPT = 64
#: Seconds that the end of the process waits for a loop that is being compiled.
_PATIENCE_S = 5.0
_DONE, _SPENT, _LEFT, _LONG = range(4)

State = Literal["python", "compiling", "native", "refused"]


class NativeLoop:
    """One loop of generated code.

    Args:
        node: The loop.
        boxes: Makes of a number what Python's code has for each variable; None for the number.
        compiler: Compiles it.
        is_asked: Whether the code asks at breakpoints.

    Attributes:
        at: After how many iterations of a run Python's code calls it; -1 for never.
        state: Whether there is machine code.
        reason: Why there is none: for a loop that was refused.
    """

    def __init__(
        self,
        node: LoopNode,
        boxes: tuple[Callable[[Any], Any] | None, ...],
        compiler: NativeCompiler,
        is_asked: bool,
    ) -> None:
        self.at = _HOT
        self.state: State = "python"
        self.reason = ""
        self.node = node
        self._boxes = tuple((i, box) for i, box in enumerate(boxes) if box is not None)
        self._compiler = compiler
        self._is_asked = is_asked
        self._count = len(boxes)
        self._code: _Code | None = None
        self._budget = _FIRST
        self._left = 0

    def begin(self) -> int:
        """Notes that the loop begins; returns `at`."""
        at = self.at
        if at > _LEAST_HOT:
            self.at = at = at - 1
        return at

    def __call__(self, gate: Any, count: int, limit: int, *values: Any) -> tuple[Any, ...]:
        """Goes on with the loop between two iterations.

        Args:
            gate: The gate of the step.
            count: Iterations that are done.
            limit: Where a counted loop ends.
            values: The variables, and what is read from outside.

        Returns:
            The count, the variables, and the count at which to call again.
        """
        variables = values[: self._count]
        if self._code is None:
            if self.state == "python":
                self.state = "compiling"
                self._compiler.compile(self)
            return (count, *variables, -1 if self.state == "refused" else count + _AGAIN)
        if self._is_watched(gate):
            return (count, *variables, count + 1)
        done, results = self._run(self._code, count, limit, values)
        if done == count:
            self._left = min(2 * self._left + 1, _MOST_LEFT)
            return (count, *variables, count + 1 + self._left)
        self._left = 0
        for i, box in self._boxes:
            results[i] = box(results[i])
        return (done, *results, done + 1)

    def _is_watched(self, gate: Any) -> bool:
        """Whether somebody wants the step at each of its safepoints, or is told of its lines."""
        if gate.raised and not gate.is_timed_only:
            return True
        if self._is_asked and gate.breakpoints().flagged is not None:
            return True
        return sys._getframe(2).f_trace is not None

    def _run(
        self, code: _Code, count: int, limit: int, values: tuple[Any, ...]
    ) -> tuple[int, list[Any]]:
        """Returns how many iterations are done, and the variables."""
        state = code.take(count, limit, values)
        status = code.short(state.address, _SHORT, -_FLOOR * _SHORT)
        if status in (_SPENT, _LONG):
            budget, start = self._budget, _now()
            status = code.long(state.address, budget, -_FLOOR * budget)
            if status == _SPENT:
                took_s = max(_now() - start, 1e-9)
                wanted = budget * min(_CALL_S / took_s, 2.0)
                self._budget = max(_FIRST >> 4, min(int(wanted), _MOST))
        return code.give_back(state)

    def use(self, code: _Code) -> None:
        """Has the loop go on with machine code from now on."""
        self._code = code
        self.at = 1
        self.state = "native"

    def refuse(self, reason: str) -> None:
        """Leaves the loop to Python for good."""
        self.reason = reason
        self.at = -1
        self.state = "refused"


class _State:
    """The words of one call."""

    __slots__ = ("address", "words")

    def __init__(self, size: int) -> None:
        self.words = bytearray(size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.words))


class _Code:
    """A compiled loop.

    Args:
        text: The loop as assembly.
        triple: For which machine.

    Raises:
        RuntimeError: if it does not compile here.
    """

    def __init__(self, text: LoopText) -> None:
        from llvmlite import binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        triple = llvm.get_process_triple()
        module = llvm.parse_assembly(f'target triple = "{triple}"\n{text.text}')
        module.verify()
        features = llvm.get_host_cpu_features().flatten()
        machine = llvm.Target.from_triple(triple).create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features, opt=2
        )
        passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(2))
        passes.getModulePassManager().run(module, passes)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        address = self._engine.get_function_address("loop")
        word = ctypes.c_int64
        arguments = (word, ctypes.c_void_p, word, word)
        self.long = ctypes.CFUNCTYPE(*arguments)(address)
        self.short = ctypes.PYFUNCTYPE(*arguments)(address)
        self._layout = struct.Struct("=" + text.layout)
        self._results = struct.Struct("=" + text.results)
        #: States that no call uses.
        self._free: list[_State] = []

    def take(self, count: int, limit: int, values: tuple[Any, ...]) -> _State:
        """Returns the state of a call."""
        try:
            state = self._free.pop()
        except IndexError:
            state = _State(self._layout.size)
        self._layout.pack_into(state.words, 0, count, limit, *values)
        return state

    def give_back(self, state: _State) -> tuple[int, list[Any]]:
        """Returns the count and the variables of a state, which another call may use then."""
        count, _, *variables = self._results.unpack_from(state.words)
        self._free.append(state)
        return count, variables


class NativeCompiler:
    """Compiles loops on a thread of its own, one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._thread: threading.Thread | None = None
        self._made: OrderedDict[str, _Code] = OrderedDict()
        self._is_closed = False
        atexit.register(self._close)

    def loop(
        self, node: LoopNode, boxes: tuple[Callable[[Any], Any] | None, ...], is_asked: bool
    ) -> NativeLoop:
        """Returns a loop of generated code; see `NativeLoop`."""
        return NativeLoop(node, boxes, self, is_asked)

    def compile(self, loop: NativeLoop) -> None:
        """Has the thread compile a loop; returns at once."""
        self._begin(lambda: self.compile_now(loop))

    def run(self, job: Callable[[], None]) -> Callable[[], None]:
        """Has the thread do a job, which raises nothing; returns what waits for its end."""
        is_done = threading.Event()

        def do() -> None:
            try:
                job()
            finally:
                is_done.set()

        self._begin(do)
        return lambda: _wait(is_done)

    def _begin(self, job: Callable[[], None]) -> None:
        with self._lock:
            self._waiting.append(job)
            thread = self._thread
            if thread is None or not thread.is_alive():
                thread = threading.Thread(target=self._work, name="flowscope-loops", daemon=True)
                self._thread = thread
                thread.start()

    def why_not(self, node: LoopNode) -> str:
        """Why a loop has no machine code; "" if it would be compiled."""
        from flowscope.plan.codegen.loop_assembly import loop_text  # not for the first step

        try:
            loop_text(node, numpy_loop)
        except UnimplementedError as error:
            return error.message
        return ""

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting or self._is_closed:
                    self._thread = None
                    return
                job = self._waiting.popleft()
            job()

    def compile_now(self, loop: NativeLoop) -> None:
        """Compiles a loop, or refuses it; not on two threads at once."""
        from flowscope.plan.codegen.loop_assembly import loop_text  # not for the first step

        try:
            loop.use(self._code(loop_text(loop.node, numpy_loop)))
        except UnimplementedError as error:
            loop.refuse(error.message)
        except (ImportError, RuntimeError, OSError) as error:
            loop.refuse(f"it could not be compiled: {error}")

    def _code(self, text: LoopText) -> _Code:
        found = self._made.get(text.text)
        if found is None:
            found = self._made[text.text] = _Code(text)
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(text.text)
        return found

    def _close(self) -> None:
        """Lets what is being compiled end before the process does."""
        thread, self._is_closed = self._thread, True
        if thread is not None:
            thread.join(_PATIENCE_S)


def _wait(is_done: threading.Event) -> None:
    """Waits for a job; in a forked process nobody does it, and the wait is given up."""
    is_done.wait(_PATIENCE_S)


@functools.cache
def native_compiler() -> NativeCompiler | None:
    """The compiler of this process's loops; None where llvmlite is not installed."""
    if sys.maxsize < 2**32 or PathFinder.find_spec("llvmlite") is None:
        return None
    return NativeCompiler()


#: Where NumPy's header has the members of a universal function, in bytes.
_FUNCTIONS, _DATA, _TYPES_COUNT, _NAME, _TYPES = 32, 40, 48, 56, 64


@functools.cache
def numpy_loop(name: str, kind: str, inputs: int) -> tuple[int, int]:
    """The addresses of NumPy's loop of a function for one dtype, and of its data.

    Args:
        name: The function, such as "exp".
        kind: "d" or "f", the dtype of all operands.
        inputs: How many operands it takes.

    Raises:
        UnimplementedError: if there is none, or NumPy's objects lie otherwise than expected.

    Source: NumPy's C API, "PyUFuncObject".
    """
    function = getattr(np, name, None)
    if not isinstance(function, np.ufunc) or (function.nin, function.nout) != (inputs, 1):
        raise UnimplementedError(f"xp.{name} has no native form")
    at = id(function)
    shown = ctypes.c_char_p.from_address(at + _NAME).value
    count = ctypes.c_int.from_address(at + _TYPES_COUNT).value
    if shown != function.__name__.encode() or count < len(function.types):
        raise UnimplementedError(f"xp.{name} lies otherwise in this NumPy than expected")
    codes = ctypes.string_at(_pointer(at + _TYPES), count * (inputs + 1))
    wanted = bytes([np.dtype(kind).num] * (inputs + 1))
    for i in range(count):
        if codes[i * (inputs + 1) : (i + 1) * (inputs + 1)] == wanted:
            return _pointer(_pointer(at + _FUNCTIONS) + 8 * i), _pointer(
                _pointer(at + _DATA) + 8 * i
            )
    raise UnimplementedError(f"xp.{name} has no native form for its dtype")


def _pointer(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


def _clock() -> Callable[[], float]:
    """The clock that measures calls: this thread's time, without waits for locks."""
    is_fine = time.get_clock_info("thread_time").resolution < 1e-4
    return time.thread_time if is_fine else time.perf_counter


_now = _clock()

__all__ = ["NativeCompiler", "NativeLoop", "native_compiler", "numpy_loop"]
