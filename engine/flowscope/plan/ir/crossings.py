"""Crossings: what a partition sends and receives, and how far its loops may run ahead.

A loop that sends runs ahead of those who receive: by `parallel_iterations` where the program asks
for another number than the default; else by the default, or by 64 kB of unread values of one key,
whichever is more. It waits between two iterations, never inside one, and one message may always
be unread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flowscope.control.loop import Loop
from flowscope.graph.lazy import frozen
from flowscope.graph.op import Op
from flowscope.ops.core.send_recv import Recv, Send
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.ir.structured import LoopNode

#: What may be unread of one key, in bytes, where the program asks for no number.
AHEAD_BYTES = 1 << 16
#: Where a loop's parallel_iterations is this, the program did not ask for a number.
_DEFAULT: int = Loop.parallel_iterations


@frozen
class Credit:
    """How far a loop may run ahead of who receives what it sends.

    Attributes:
        key: What is sent.
        most: With so many unread values it waits.
        nbytes: Only if these are so many bytes, too; 0 where that does not count.
    """

    key: str
    most: int
    nbytes: int


def is_crossing(op: Op) -> bool:
    """Whether an op sends or receives."""
    return isinstance(op, Send | Recv)


def keys(nodes: Iterable[Node]) -> list[str]:
    """Returns the keys of what nodes and their blocks send and receive."""
    walked = (n for node in nodes for n in (node, *_inside(node)))
    return list(dict.fromkeys(n.op.key for n in walked if isinstance(n.op, Send | Recv)))


def credits(loop: LoopNode) -> tuple[Credit, ...]:
    """Returns how far a loop may run ahead, per key at which it looks; () for one that sends none.

    Who receives takes values in the order in which they are sent. So of what every iteration sends
    to one device the last value tells for all, as far as bytes are known. Loops inside look after
    themselves.
    """
    always = [n for b in loop.blocks for n in b.nodes if isinstance(n.op, Send)]
    last = {_receiver(n): n for n in always}
    found: list[Credit] = []
    known: dict[str, int] = {}
    for node in _sends(loop.blocks):
        credit, receiver = _credit(node, loop.op.parallel_iterations), _receiver(node)
        if credit.nbytes or receiver not in last:
            found.append(credit)
        else:
            known[receiver] = min(credit.most, known.get(receiver, credit.most))
    found += [Credit(_key(last[receiver]), most, 0) for receiver, most in known.items()]
    return tuple(found)


def windows(nodes: Iterable[Node], is_tokens: bool) -> dict[str, int]:
    """Returns after how many values who receives says that they are read, by key.

    It is half of what may be unread, so whoever waits for credit hears of it in time.

    Args:
        nodes: The nodes of a partition, with those inside of others.
        is_tokens: Whether the machine of tokens runs it: each Send looks after itself there.
    """
    found: dict[str, int] = {}
    for loop in nodes:
        if not isinstance(loop, LoopNode):
            continue
        if is_tokens:
            ahead = loop.op.parallel_iterations
            most = {_key(n): send_credit(n, ahead) for n in _sends(loop.blocks)}
        else:
            most = {credit.key: credit.most for credit in credits(loop)}
        found.update((key, max(1, count // 2)) for key, count in most.items())
    return found


def _sends(blocks: Iterable[Program]) -> Iterator[Node]:
    """Yields the Sends of blocks and of branches in them, without those of loops in them."""
    for node in (n for b in blocks for n in b.nodes):
        if isinstance(node.op, Send):
            yield node
        elif not isinstance(node, LoopNode):
            yield from _sends(node.blocks)


def _receiver(node: Node) -> str:
    assert isinstance(node.op, Send)
    return node.op.recv_device


def _key(node: Node) -> str:
    assert isinstance(node.op, Send)
    return node.op.key


def send_credit(node: Node, parallel_iterations: int) -> int:
    """Returns how many values of a Send may be unread, as far as shapes are known."""
    return _credit(node, parallel_iterations).most


def _credit(node: Node, most: int) -> Credit:
    assert isinstance(node.op, Send)
    if most != _DEFAULT:
        return Credit(node.op.key, most, 0)
    nbytes = node.inputs[0].spec.nbytes
    if nbytes is None:
        return Credit(node.op.key, most, AHEAD_BYTES)
    return Credit(node.op.key, max(most, AHEAD_BYTES // max(nbytes, 1)), 0)


def _inside(node: Node) -> Iterable[Node]:
    return (n for b in node.blocks for n in b.walk())


def has_waits(node: Node) -> bool:
    """Whether something blocks, or is sent, in a node's blocks: then these become primitives."""
    return any(n.op.is_blocking or isinstance(n.op, Send) for n in _inside(node))


__all__ = [
    "AHEAD_BYTES",
    "Credit",
    "credits",
    "has_waits",
    "is_crossing",
    "keys",
    "send_credit",
    "windows",
]  # fmt: skip
