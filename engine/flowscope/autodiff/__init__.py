"""Differentiation, in the same graph. Users enter by `gradients`, blocks by `blocks`.

In: tensors ys and xs. Out: a tensor per x. Called by users and by the optimizers of
    `flowscope.train`.
"""

from flowscope.autodiff.gradients import gradient_work, gradients
from flowscope.autodiff.registry import is_differentiable
from flowscope.control.blocks import differentiable, differentiator

differentiator.append(gradient_work)
differentiable.append(is_differentiable)
