"""Operations that own blocks: branches, loops, calls. Users enter by `cond` and `while_loop`.

In: Python functions of tensors. Out: operations that own a sub-graph, and call it. Called by users.
"""

from flowscope.control import (
    serialization as written,  # tells the written forms how functions are made
)
