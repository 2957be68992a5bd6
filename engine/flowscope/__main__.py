"""What flowscope finds on this machine, and pages of models: `python -m flowscope`.

python -m flowscope                  print what is used, what is missing, what it would bring
python -m flowscope --environment    print what to set before Python starts, as NAME=value
python -m flowscope MODEL [-o FILE]  write the view of a model to an HTML page, and open it where
                                     there is a terminal with a display: .onnx, a graph of
                                     TensorFlow (.pb, .pbtxt), the folder of a saved model
"""

import os
import pathlib
import sys
import webbrowser

from flowscope.errors import OpError
from flowscope.runtime.threads.blas_kernels import environment
from flowscope.runtime.threads.report import runtime_report


def main(args: list[str]) -> int:
    """Runs the command line described at the top of this file; returns its exit code."""
    if not args:
        print(runtime_report())
        return 0
    if args == ["--environment"]:
        print(*(f"{name}={value}" for name, value in environment().items()), sep="\n")
        return 0
    model, page = _model_of(args)
    if model is None:
        print(__doc__, file=sys.stderr)
        return 2
    return _write_page(model, page)


def _model_of(args: list[str]) -> tuple[str | None, str | None]:
    """The model and the page that arguments name; None for the model if they are none of these."""
    page = None
    if "-o" in args:
        at = args.index("-o")
        if at + 1 == len(args):
            return None, None
        page, args = args[at + 1], args[:at] + args[at + 2 :]
    is_one = len(args) == 1 and not args[0].startswith("-")
    return (args[0] if is_one else None), page


def _write_page(model: str, page: str | None) -> int:
    from flowscope.live.watchers.model_files import write_model_page  # at need: it loads the view

    try:
        written = write_model_page(model, page)
    except OpError as error:
        print(f"{model}: {' '.join(error.message.split())}", file=sys.stderr)
        return 1
    print(written)
    if _is_seen():
        webbrowser.open(pathlib.Path(written).resolve().as_uri())
    return 0


def _is_seen() -> bool:
    """Whether somebody sits before a terminal with a display."""
    has_display = sys.platform in ("win32", "darwin") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return has_display and sys.stdout.isatty()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
