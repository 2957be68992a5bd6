"""A gate that ends a step at a chosen safepoint."""

import flowscope as fs
from flowscope.runtime.waits.gate import Gate


class StopAt(Gate):
    """Ends the step at its n-th safepoint."""

    __slots__ = ("count",)

    def __init__(self, count):
        super().__init__()
        self.raised = True
        self.count = count

    def hold(self, point, here=None):
        if point >= 0:
            self.count -= 1
            if self.count < 0:
                raise fs.errors.CancelledError("here")
        return False
