"""What is known of values in functions: of a parameter in every call, of a cotangent."""

from __future__ import annotations

from flowscope.graph.op import Spec
from flowscope.graph.values.dtypes import resource


def outside(spec: Spec) -> Spec:
    """The Spec that holds in every call: without the known value."""
    return Spec(spec.dtype, spec.shape, variable=spec.variable)


def value_spec(spec: Spec) -> Spec:
    """Returns the Spec of a cotangent for a tensor of this Spec, the variable's for a handle."""
    if spec.dtype is resource and spec.variable is not None:
        return outside(spec.variable)
    return outside(spec)


def flows(spec: Spec) -> bool:
    """Whether cotangents can arrive at a tensor of this Spec."""
    spec = value_spec(spec)
    if spec.dtype.kind == "v" and spec.variable is not None:
        return flows(spec.variable)
    return spec.dtype.is_differentiable


__all__ = ["flows", "outside", "value_spec"]
