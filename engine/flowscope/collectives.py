"""Collectives: reductions and exchanges among devices, one tensor per rank."""

from flowscope.api.lazy_parts import part as _part

__getattr__, __dir__, __all__ = _part(__name__, globals())  # names: see `exports`
