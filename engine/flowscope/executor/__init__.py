"""The executor: what may run next, in which frame and iteration, and what is dead.

In: a lowered program, cut into units (`plan.executables.units`). Out: which invocation to run next.
The runtime's driver runs invocations and reports what came out of them. Here are no threads, no
clocks, no kernels: the same events in the same order give the same answers.
"""
