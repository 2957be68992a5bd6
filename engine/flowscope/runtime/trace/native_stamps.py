"""Compiled functions that read a clock and keep the reading: the native side of stamp buffers.

A reading of Python's clock and `list.append` are two calls and an object, 80 to 100 ns. These are
one call of a function without arguments, bound to an array of words: how many readings there are
(with the head), how many fit, from how many on the array is to be flushed, then the readings.

The processor's counter is read where the system's own clock is that counter, which says that it
runs evenly and is the same on all cores; elsewhere `clock_gettime`. It is LLVM's assembly, compiled
by llvmlite, as that of `flowscope.runtime.threads.native_code` is.

Source: LLVM's language reference, "llvm.readcyclecounter"; Python's C API, "Common Object
Structures".
"""

from __future__ import annotations

import ctypes
import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from flowscope.plan.codegen.stamps import HEAD

_CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
#: A function of Python's that takes no arguments, in `PyMethodDef`.
_NO_ARGUMENTS = 4


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _now(triple: str) -> str:
    """Returns the lines that read a clock, which is never negative."""
    is_steady = _CLOCK_SOURCE.exists() and _CLOCK_SOURCE.read_text().strip() == "tsc"
    if triple.startswith("x86_64") and is_steady:
        return "  %now = call i64 @llvm.readcyclecounter()"
    read = _address(ctypes.CDLL(None).clock_gettime)
    return f"""
  %time = alloca [2 x i64]
  %ignored = call i32 inttoptr (i64 {read} to ptr)(i32 {time.CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %rest.p = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.p
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest"""


def _text(triple: str) -> str:
    """Returns the code.

    Args:
        triple: For which machine.
    """
    new = f"inttoptr (i64 {_address(ctypes.pythonapi.Py_IncRef)} to ptr)"
    none, false, true = (f"inttoptr (i64 {id(v)} to ptr)" for v in (None, False, True))
    keep = f"""
  %words.p = getelementptr i8, ptr %array, i64 {object.__basicsize__}
  %words = load ptr, ptr %words.p
  %count = load i64, ptr %words
  %most.p = getelementptr i64, ptr %words, i64 1
  %most = load i64, ptr %most.p
{_now(triple)}
  %fits = icmp slt i64 %count, %most
  br i1 %fits, label %keep, label %end
keep:
  %at = getelementptr i64, ptr %words, i64 %count"""
    kept = """
  %more = add i64 %count, 1
  store i64 %more, ptr %words
  br label %end
end:"""
    return f"""
target triple = "{triple}"
declare i64 @llvm.readcyclecounter()

define ptr @stamp(ptr %array, ptr %unused) {{
entry:{keep}
  store i64 %now, ptr %at{kept}
  call void {new}(ptr {none})
  ret ptr {none}
}}

define ptr @turn(ptr %array, ptr %unused) {{
entry:{keep}
  %negative = sub i64 0, %now
  store i64 %negative, ptr %at{kept}
  %flush.p = getelementptr i64, ptr %words, i64 2
  %flush = load i64, ptr %flush.p
  %is.full = icmp sge i64 %count, %flush
  %answer = select i1 %is.full, ptr {true}, ptr {false}
  call void {new}(ptr %answer)
  ret ptr %answer
}}
"""


class _Method(ctypes.Structure):
    """Python's `PyMethodDef`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Stamper:
    """The compiled functions.

    Raises:
        ImportError: if llvmlite is not installed.
        RuntimeError: if the code does not compile here, or arrays lie otherwise than it expects.
        AttributeError: if this system has no clock for it.
    """

    def __init__(self) -> None:
        from llvmlite import binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        triple = llvm.get_process_triple()
        module = llvm.parse_assembly(_text(triple))
        module.verify()
        machine = llvm.Target.from_triple(triple).create_target_machine(opt=2)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        names = ("stamp", "turn")
        addresses = [self._engine.get_function_address(n) for n in names]
        self._methods = [
            _Method(n.encode(), a, _NO_ARGUMENTS, None)
            for n, a in zip(names, addresses, strict=True)
        ]
        self._defined = [ctypes.addressof(m) for m in self._methods]
        make = ctypes.pythonapi.PyCFunction_NewEx
        self._make = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object
        )(_address(make))
        self._check()

    def functions(self, words: Any) -> tuple[Callable[[], None], Callable[[], bool]]:
        """Two functions: one keeps a reading; one keeps it negated and tells whether to flush.

        Args:
            words: The array, int64 of one dimension in C order. The functions keep it alive; it
                must not be resized.
        """
        stamp, turn = [self._make(defined, words, self) for defined in self._defined]
        return stamp, turn

    def _check(self) -> None:
        words = np.array([HEAD, HEAD + 3, HEAD + 2, 0, 0, 0], np.int64)
        lies = ctypes.c_int64.from_address(id(words) + object.__basicsize__).value
        if lies != words.ctypes.data:
            raise RuntimeError("arrays lie otherwise than expected")
        stamp, turn = self.functions(words)
        told = [stamp(), turn(), turn(), turn()]
        a, b, c = words[HEAD:].tolist()
        if told != [None, False, True, True] or not 0 < a <= -b <= -c:
            raise RuntimeError("compiled code keeps no readings here")


@functools.cache
def stamper() -> Stamper | None:
    """Returns the compiled functions; None where there are none: no llvmlite, no clock."""
    if sys.maxsize < 2**32 or sys.platform == "win32":
        return None
    try:
        return Stamper()
    except (ImportError, RuntimeError, AttributeError):
        return None


__all__ = ["Stamper", "stamper"]
