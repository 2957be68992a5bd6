"""Parts of TensorFlow 1's contrib that programs need: tables and staging areas, under its names."""

from flowscope.api.lazy_parts import part as _part

__getattr__, __dir__, __all__ = _part(__name__, globals())  # names: see `exports`
