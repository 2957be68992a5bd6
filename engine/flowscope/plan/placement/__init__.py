"""Which device each node of a program runs on, and why. The pass `place` enters by `choices`.

In: an ordered program and the session's devices. `makers` says who makes a value, through loops and
branches; `ties` which nodes must share a device; `choices` which devices such a component can have.
The pass `flowscope.plan.passes.place` chooses among these.
"""
