"""What flowscope finds on this machine: `python -m flowscope`.

python -m flowscope                  print what is used, what is missing, what it would bring
python -m flowscope --environment    print what to set before Python starts, as NAME=value
"""

import sys

from flowscope.runtime.threads.blas_kernels import environment
from flowscope.runtime.threads.report import runtime_report


def main(args: list[str]) -> int:
    """Runs the command line described at the top of this file; returns its exit code."""
    if not args:
        print(runtime_report())
    elif args == ["--environment"]:
        print(*(f"{name}={value}" for name, value in environment().items()), sep="\n")
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
