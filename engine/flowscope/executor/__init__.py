"""What may run next: frames, iterations, dead tokens. The runtime enters by `machine`.

In: a lowered program, cut into units (`plan.executables.units`). Out: which invocation to run next.
The runtime's driver runs invocations and reports what came out of them. Here are no threads, no
clocks, no kernels: the same events in the same order give the same answers.
"""
