"""Differentiation: gradients() adds the operations of the gradient to the same graph.

In: tensors ys and xs. Out: a tensor per x. Called by users and by the optimizers of
    `flowscope.train`.
"""

from flowscope.autodiff.gradients import gradients
from flowscope.control.calls import differentiator

differentiator.append(gradients)
