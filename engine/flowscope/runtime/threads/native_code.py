"""The compiled side of `runtime.threads.native_pool`: what helper threads and their callers run.

The functions share a few words of memory, `State`. `word` holds the number of the job in its upper
half and below it which blocks nobody has begun, `last` and `first`; one compare-and-swap takes the
first block (the caller) or the last one (a helper), and fails for whoever looks at an older job.
`in_block` of a helper is the block that it may be in, plus 1: it is written before the block is
taken, so who finds no block left and no helper inside knows that all is done.

It is LLVM's assembly, for llvmlite compiles nothing else. Helpers sleep on locks of the
interpreter's, which every platform has and which need not the interpreter's own lock.

Source: LLVM's language reference, "Atomic memory ordering constraints".
"""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

import numpy as np

#: At most so many helpers.
MOST = 3

# Places in the state, in words of 8 bytes; what threads write lies in cache lines of its own.
_WORD, _OWNER, QUIT, YIELDS, ACQUIRE, RELEASE, YIELD, SLEEP_US = 0, 8, 16, 17, 18, 19, 20, 21
_RECIPE, _A, _B, _C = 24, 25, 26, 27
HELPER, HELPER_WORDS, _IN_BLOCK, _ASLEEP, LOCK = 32, 32, 0, 8, 16
WORDS = HELPER + MOST * HELPER_WORDS

#: The words of a call in place of a product: a function, four arguments, and what it returns.
CALL_WORDS = 6
#: The words of a recipe: how one product is cut.
RECIPE = (
    "trans_a", "trans_b", "m", "n", "k", "lda", "ldb", "ldc", "rows", "columns", "a_bytes",
    "b_bytes", "c_bytes", "blocks", "patience", "gemm", "is_double", "alignment", "calls", "count",
)  # fmt: skip
#: Their places.
AT = {name: i for i, name in enumerate(RECIPE)}


def _text(triple: str, integer: str) -> str:
    """Returns the code.

    Args:
        triple: For which machine.
        integer: The type of sizes in the BLAS library.
    """
    pause = ""
    if triple.startswith("x86_64"):
        pause = 'call void asm sideeffect "pause", ""()'
    elif triple.startswith(("aarch64", "arm64")):
        pause = 'call void asm sideeffect "yield", ""()'
    data = object.__basicsize__
    load = "\n".join(
        f"  %{name}.p = getelementptr i64, ptr %recipe, i64 {i}\n"
        f"  %{name} = load i64, ptr %{name}.p"
        for name, i in AT.items()
    )
    sizes = ("mi", "ni", "k", "lda", "ldb", "ldc")
    cast = "\n".join(
        f"  %{s}.i = {'add i64 0,' if integer == 'i64' else 'trunc i64'} %{s}"
        + ("" if integer == "i64" else " to i32")
        for s in sizes
    )

    def gemm(real: str) -> str:
        i = integer
        return (
            f"call void %f(i32 101, i32 %ta, i32 %tb, {i} %mi.i, {i} %ni.i, {i} %k.i, "
            f"{real} 1.0, ptr %a, {i} %lda.i, ptr %b, {i} %ldb.i, {real} 0.0, ptr %c, {i} %ldc.i)"
        )

    return f"""
target triple = "{triple}"

define internal void @block(ptr %state, i64 %i) noinline {{
  %recipe.p = getelementptr i64, ptr %state, i64 {_RECIPE}
  %recipe = load ptr, ptr %recipe.p
{load}
  %is.calls = icmp ne i64 %calls, 0
  br i1 %is.calls, label %list, label %product
list:
  %table = inttoptr i64 %calls to ptr
  %per = mul i64 %count, {CALL_WORDS}
  %start = mul i64 %i, %per
  br label %each
each:
  %j = phi i64 [ 0, %list ], [ %j.1, %one ]
  %is.one = icmp slt i64 %j, %count
  br i1 %is.one, label %one, label %made
one:
  %o = mul i64 %j, {CALL_WORDS}
  %at = add i64 %start, %o
  %call.p = getelementptr i64, ptr %table, i64 %at
  %arg0.p = getelementptr i64, ptr %call.p, i64 1
  %arg1.p = getelementptr i64, ptr %call.p, i64 2
  %arg2.p = getelementptr i64, ptr %call.p, i64 3
  %arg3.p = getelementptr i64, ptr %call.p, i64 4
  %status.p = getelementptr i64, ptr %call.p, i64 5
  %call = load ptr, ptr %call.p
  %arg0 = load i64, ptr %arg0.p
  %arg1 = load i64, ptr %arg1.p
  %arg2 = load i64, ptr %arg2.p
  %arg3 = load i64, ptr %arg3.p
  %status = call i32 %call(i64 %arg0, i64 %arg1, i64 %arg2, i64 %arg3)
  %status.64 = zext i32 %status to i64
  store i64 %status.64, ptr %status.p
  %j.1 = add i64 %j, 1
  br label %each
made:
  ret void
product:
  %r = mul i64 %i, %rows
  %s = mul i64 %i, %columns
  %left.m = sub i64 %m, %r
  %left.n = sub i64 %n, %s
  %cut.rows = icmp ne i64 %rows, 0
  %short.m = icmp slt i64 %left.m, %rows
  %part.m = select i1 %short.m, i64 %left.m, i64 %rows
  %mi = select i1 %cut.rows, i64 %part.m, i64 %m
  %cut.columns = icmp ne i64 %columns, 0
  %short.n = icmp slt i64 %left.n, %columns
  %part.n = select i1 %short.n, i64 %left.n, i64 %columns
  %ni = select i1 %cut.columns, i64 %part.n, i64 %n
  %a.p = getelementptr i64, ptr %state, i64 {_A}
  %b.p = getelementptr i64, ptr %state, i64 {_B}
  %c.p = getelementptr i64, ptr %state, i64 {_C}
  %a0 = load ptr, ptr %a.p
  %b0 = load ptr, ptr %b.p
  %c0 = load ptr, ptr %c.p
  %a.o = mul i64 %i, %a_bytes
  %b.o = mul i64 %i, %b_bytes
  %c.o = mul i64 %i, %c_bytes
  %a = getelementptr i8, ptr %a0, i64 %a.o
  %b = getelementptr i8, ptr %b0, i64 %b.o
  %c = getelementptr i8, ptr %c0, i64 %c.o
  %ta = trunc i64 %trans_a to i32
  %tb = trunc i64 %trans_b to i32
{cast}
  %f = inttoptr i64 %gemm to ptr
  %double = icmp ne i64 %is_double, 0
  br i1 %double, label %doubles, label %floats
floats:
  {gemm("float")}
  ret void
doubles:
  {gemm("double")}
  ret void
}}

define i64 @pauses(i64 %n) {{
entry:
  br label %again
again:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  {pause}
  call void asm sideeffect "", "~{{memory}}"()
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %again, label %end
end:
  ret i64 %n
}}

define i64 @give_way(ptr %state, i64 %n) {{
entry:
  %yield.p = getelementptr i64, ptr %state, i64 {YIELD}
  %yield = load ptr, ptr %yield.p
  br label %again
again:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %ignored = call i32 %yield()
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %again, label %end
end:
  ret i64 %n
}}

define i64 @help(ptr %state, i64 %number) {{
entry:
  %at = mul i64 %number, {HELPER_WORDS}
  %at.h = add i64 %at, {HELPER}
  %own = getelementptr i64, ptr %state, i64 %at.h
  %in.p = getelementptr i64, ptr %own, i64 {_IN_BLOCK}
  %asleep.p = getelementptr i64, ptr %own, i64 {_ASLEEP}
  %lock.p = getelementptr i64, ptr %own, i64 {LOCK}
  %lock = load ptr, ptr %lock.p
  %quit.p = getelementptr i64, ptr %state, i64 {QUIT}
  %yields.p = getelementptr i64, ptr %state, i64 {YIELDS}
  %acquire.p = getelementptr i64, ptr %state, i64 {ACQUIRE}
  %acquire = load ptr, ptr %acquire.p
  %yield.p = getelementptr i64, ptr %state, i64 {YIELD}
  %yield = load ptr, ptr %yield.p
  %sleep.p = getelementptr i64, ptr %state, i64 {SLEEP_US}
  %sleep = load i64, ptr %sleep.p
  br label %look
look:
  %looked = phi i64 [ 0, %entry ], [ 0, %leave ], [ %looked.1, %linger ],
                    [ 0, %rouse ], [ 0, %slept ], [ 0, %woken.late ]
  %w = load atomic i64, ptr %state acquire, align 8
  %first = and i64 %w, 65535
  %w.16 = lshr i64 %w, 16
  %last = and i64 %w.16, 65535
  %is.work = icmp ult i64 %first, %last
  br i1 %is.work, label %take, label %nothing
take:
  store atomic i64 %last, ptr %in.p seq_cst, align 8
  %w.less = sub i64 %w, 65536
  %pair = cmpxchg ptr %state, i64 %w, i64 %w.less seq_cst seq_cst
  %taken = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %taken, label %run, label %leave
run:
  %index = sub i64 %last, 1
  call void @block(ptr %state, i64 %index)
  br label %leave
leave:
  store atomic i64 0, ptr %in.p release, align 8
  br label %look
nothing:
  %quit = load atomic i64, ptr %quit.p acquire, align 8
  %quits = icmp ne i64 %quit, 0
  br i1 %quits, label %end, label %idle
idle:
  %looked.1 = add i64 %looked, 1
  %yields = load i64, ptr %yields.p
  %lingers = icmp slt i64 %looked.1, %yields
  br i1 %lingers, label %linger, label %sleepy
linger:
  %ignored = call i32 %yield()
  br label %look
sleepy:
  store atomic i64 1, ptr %asleep.p seq_cst, align 8
  %w2 = load atomic i64, ptr %state seq_cst, align 8
  %first2 = and i64 %w2, 65535
  %w2.16 = lshr i64 %w2, 16
  %last2 = and i64 %w2.16, 65535
  %is.work2 = icmp ult i64 %first2, %last2
  %quit2 = load atomic i64, ptr %quit.p seq_cst, align 8
  %quits2 = icmp ne i64 %quit2, 0
  %stays = or i1 %is.work2, %quits2
  br i1 %stays, label %rouse.self, label %fall.asleep
rouse.self:
  %pair2 = cmpxchg ptr %asleep.p, i64 1, i64 0 seq_cst seq_cst
  %roused = extractvalue {{ i64, i1 }} %pair2, 1
  br i1 %roused, label %rouse, label %fall.asleep
rouse:
  br label %look
fall.asleep:
  %status = call i32 %acquire(ptr %lock, i64 %sleep, i32 0)
  %got = icmp eq i32 %status, 1
  br i1 %got, label %slept, label %late
slept:
  br label %look
late:
  %pair3 = cmpxchg ptr %asleep.p, i64 1, i64 0 seq_cst seq_cst
  %alone = extractvalue {{ i64, i1 }} %pair3, 1
  br i1 %alone, label %end, label %woken.late
woken.late:
  %status2 = call i32 %acquire(ptr %lock, i64 -1, i32 0)
  br label %look
end:
  ret i64 0
}}

define internal void @wake(ptr %state, i64 %helpers) {{
entry:
  %release.p = getelementptr i64, ptr %state, i64 {RELEASE}
  %release = load ptr, ptr %release.p
  br label %next
next:
  %h = phi i64 [ 0, %entry ], [ %h.1, %done ]
  %is.one = icmp slt i64 %h, %helpers
  br i1 %is.one, label %look, label %end
look:
  %at = mul i64 %h, {HELPER_WORDS}
  %at.h = add i64 %at, {HELPER}
  %own = getelementptr i64, ptr %state, i64 %at.h
  %asleep.p = getelementptr i64, ptr %own, i64 {_ASLEEP}
  %asleep = load atomic i64, ptr %asleep.p seq_cst, align 8
  %sleeps = icmp ne i64 %asleep, 0
  br i1 %sleeps, label %rouse, label %done
rouse:
  %pair = cmpxchg ptr %asleep.p, i64 1, i64 0 seq_cst seq_cst
  %roused = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %roused, label %release.it, label %done
release.it:
  %lock.p = getelementptr i64, ptr %own, i64 {LOCK}
  %lock = load ptr, ptr %lock.p
  call void %release(ptr %lock)
  br label %done
done:
  %h.1 = add i64 %h, 1
  br label %next
end:
  ret void
}}

define i64 @stop(ptr %state) {{
  %quit.p = getelementptr i64, ptr %state, i64 {QUIT}
  store atomic i64 1, ptr %quit.p seq_cst, align 8
  call void @wake(ptr %state, i64 {MOST})
  ret i64 0
}}

define i64 @late(ptr %state, i64 %patience) {{
entry:
  br label %next
next:
  %h = phi i64 [ 0, %entry ], [ %h.1, %done ]
  %bits = phi i64 [ 0, %entry ], [ %bits.1, %done ]
  %left = phi i64 [ %patience, %entry ], [ %left.1, %done ]
  %is.one = icmp slt i64 %h, {MOST}
  br i1 %is.one, label %look, label %end
look:
  %left.2 = phi i64 [ %left, %next ], [ %left.3, %wait ]
  %at = mul i64 %h, {HELPER_WORDS}
  %at.h = add i64 %at, {HELPER}
  %own = getelementptr i64, ptr %state, i64 %at.h
  %index.1 = load atomic i64, ptr %own acquire, align 8
  %inside = icmp ne i64 %index.1, 0
  br i1 %inside, label %hope, label %done
hope:
  %patient = icmp sgt i64 %left.2, 0
  br i1 %patient, label %wait, label %give.up
wait:
  {pause}
  %left.3 = sub i64 %left.2, 1
  br label %look
give.up:
  %index = sub i64 %index.1, 1
  %bit = shl i64 1, %index
  %bits.2 = or i64 %bits, %bit
  br label %done
done:
  %bits.1 = phi i64 [ %bits, %look ], [ %bits.2, %give.up ]
  %left.1 = phi i64 [ %left.2, %look ], [ 0, %give.up ]
  %h.1 = add i64 %h, 1
  br label %next
end:
  ret i64 %bits
}}

define i64 @product(ptr %state, ptr %recipe, ptr %x, ptr %y, ptr %z, i64 %helpers) {{
entry:
  %owner.p = getelementptr i64, ptr %state, i64 {_OWNER}
  %pair = cmpxchg ptr %owner.p, i64 0, i64 1 seq_cst seq_cst
  %owned = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %owned, label %check, label %refuse
refuse:
  ret i64 -1
check:
  %inside = call i64 @late(ptr %state, i64 0)
  %still = icmp ne i64 %inside, 0
  %x.p = getelementptr i8, ptr %x, i64 {data}
  %y.p = getelementptr i8, ptr %y, i64 {data}
  %z.p = getelementptr i8, ptr %z, i64 {data}
  %xd = load i64, ptr %x.p
  %yd = load i64, ptr %y.p
  %zd = load i64, ptr %z.p
  %same = icmp eq i64 %xd, %yd
  %alignment.p = getelementptr i64, ptr %recipe, i64 {AT["alignment"]}
  %alignment = load i64, ptr %alignment.p
  %both = or i64 %xd, %yd
  %odd = and i64 %both, %alignment
  %is.odd = icmp ne i64 %odd, 0
  %no.1 = or i1 %still, %same
  %no = or i1 %no.1, %is.odd
  br i1 %no, label %give.back, label %publish
give.back:
  store atomic i64 0, ptr %owner.p release, align 8
  ret i64 -1
publish:
  %recipe.p = getelementptr i64, ptr %state, i64 {_RECIPE}
  %a.p = getelementptr i64, ptr %state, i64 {_A}
  %b.p = getelementptr i64, ptr %state, i64 {_B}
  %c.p = getelementptr i64, ptr %state, i64 {_C}
  store ptr %recipe, ptr %recipe.p
  store i64 %xd, ptr %a.p
  store i64 %yd, ptr %b.p
  store i64 %zd, ptr %c.p
  %blocks.p = getelementptr i64, ptr %recipe, i64 {AT["blocks"]}
  %blocks = load i64, ptr %blocks.p
  %w = load atomic i64, ptr %state acquire, align 8
  %job = lshr i64 %w, 32
  %job.1 = add i64 %job, 1
  %high = shl i64 %job.1, 32
  %count = shl i64 %blocks, 16
  %new = or i64 %high, %count
  store atomic i64 %new, ptr %state seq_cst, align 8
  call void @wake(ptr %state, i64 %helpers)
  br label %take
take:
  %w2 = load atomic i64, ptr %state acquire, align 8
  %first = and i64 %w2, 65535
  %w2.16 = lshr i64 %w2, 16
  %last = and i64 %w2.16, 65535
  %is.work = icmp ult i64 %first, %last
  br i1 %is.work, label %try, label %wait
try:
  %w2.more = add i64 %w2, 1
  %pair2 = cmpxchg ptr %state, i64 %w2, i64 %w2.more seq_cst seq_cst
  %taken = extractvalue {{ i64, i1 }} %pair2, 1
  br i1 %taken, label %run, label %take
run:
  call void @block(ptr %state, i64 %first)
  br label %take
wait:
  %patience.p = getelementptr i64, ptr %recipe, i64 {AT["patience"]}
  %patience = load i64, ptr %patience.p
  %bits = call i64 @late(ptr %state, i64 %patience)
  store atomic i64 0, ptr %owner.p release, align 8
  ret i64 %bits
}}
"""


class NativeCode:
    """The compiled functions, and what they call.

    Raises:
        ImportError: if llvmlite is not installed.
        RuntimeError: if the code does not compile here, or arrays lie otherwise than it expects.
    """

    def __init__(self, long_sizes: bool) -> None:
        from llvmlite import binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        triple = llvm.get_process_triple()
        module = llvm.parse_assembly(_text(triple, "i64" if long_sizes else "i32"))
        module.verify()
        machine = llvm.Target.from_triple(triple).create_target_machine(opt=2)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        pointer, word, array = ctypes.c_void_p, ctypes.c_int64, ctypes.py_object
        made = ctypes.CFUNCTYPE
        at = self._engine.get_function_address
        self.pauses = made(word, word)(at("pauses"))
        self.give_way = made(word, pointer, word)(at("give_way"))
        self.help = made(word, pointer, word)(at("help"))
        self.stop = made(word, pointer)(at("stop"))
        self.late = made(word, pointer, word)(at("late"))
        self.product = made(word, pointer, pointer, array, array, array, word)(at("product"))
        self._locks = ctypes.pythonapi.PyThread_allocate_lock
        self._locks.restype, self._locks.argtypes = pointer, ()
        self._hold = ctypes.pythonapi.PyThread_acquire_lock
        self._hold.restype, self._hold.argtypes = ctypes.c_int, (pointer, ctypes.c_int)
        self.acquire = _address(ctypes.pythonapi.PyThread_acquire_lock_timed)
        self.release = _address(ctypes.pythonapi.PyThread_release_lock)
        self.yields = _address(_yield_function())
        self._check()
        count = 2000
        self.pauses_per_second = count / min(_seconds(self.pauses, count) for _ in range(5))
        state = np.zeros(WORDS, np.int64)
        state[YIELD] = self.yields
        times = [_seconds(self.give_way, state.ctypes.data, 100) for _ in range(3)]
        self.yield_s = min(times) / 100

    def new_lock(self) -> int:
        """Returns a lock of the interpreter's that is held: to take it is to sleep."""
        lock: int = self._locks()
        self._hold(lock, 1)
        return lock

    def _check(self) -> None:
        probe = np.arange(3.0)
        word = ctypes.c_int64.from_address(id(probe) + object.__basicsize__)
        if word.value != probe.ctypes.data:
            raise RuntimeError("arrays lie otherwise than expected")


def _seconds(function: Any, *args: Any) -> float:
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _yield_function() -> Any:
    if os.name == "nt":
        return ctypes.CDLL("kernel32").SwitchToThread
    return ctypes.CDLL(None).sched_yield


__all__ = [
    "CALL_WORDS",
    "HELPER",
    "HELPER_WORDS",
    "LOCK",
    "MOST",
    "RECIPE",
    "SLEEP_US",
    "WORDS",
    "YIELDS",
    "NativeCode",
]
