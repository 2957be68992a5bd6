"""flowscope: a dataflow engine with a live view. Users enter here: `import flowscope as fs`.

    import flowscope as fs

    x = fs.placeholder(fs.float32, [None, 2])
    y = fs.reduce_sum(fs.square(x))
    with fs.Session() as sess:
        sess.run(y, {x: [[1.0, 2.0]]})

Names, arguments and semantics are TensorFlow 1's wherever the concept exists there.

A family of functions is loaded when one of its names is first used. `exports` writes where they are
found: `public_names` for Python, and `__init__.pyi` for type checkers and editors.
"""

from importlib import import_module as _import_module

from flowscope.api.absent import refusal as _refusal
from flowscope.api.public_names import (
    NAMES as _NAMES,
    OP_TYPES as _OP_TYPES,
    PARTS as _PARTS,
    REGISTRIES as _REGISTRIES,
)
from flowscope.graph import providers as _providers

__version__ = "0.1.0"

_providers.op_types.update((op, m) for m, ops in _OP_TYPES.items() for op in ops.split())
_providers.registries.update((name, tuple(ms.split())) for name, ms in _REGISTRIES.items())

#: Where a public name is found: a module, and the name there ("" for the module itself).
_found = {part: (f"flowscope.{part}", "") for part in _PARTS.split()}
for _module, _names in _NAMES.items():
    for _name in _names.split():
        _theirs, _, _ours = _name.partition("=")
        _found[_ours or _theirs] = (_module, _theirs)

__all__ = sorted(_found)

_refuse = _refusal(__name__, _found)


def __getattr__(name):  # type: ignore[no-untyped-def]  # type checkers read the stub
    """Loads what a public name stands for."""
    if name not in _found:
        return _refuse(name)
    module, theirs = _found[name]
    loaded = _import_module(module)
    value = getattr(loaded, theirs) if theirs else loaded
    globals()[name] = value
    return value


def __dir__():  # type: ignore[no-untyped-def]
    """Returns the public names, those not loaded yet as well."""
    return sorted({*globals(), *__all__})
