"""The first words on a connection: who is there, what for, and that both know the secret.

    initiator -> hello: what the connection is for, both names and incarnations, a random number
    acceptor  -> its random number, and a proof: HMAC of all that was said, by the secret
    initiator -> its own proof
    acceptor  -> that it takes the connection, or why not

Whoever does not know the secret is told so and is closed out before anything else is read. With TLS
all of it is sealed, and certificates have been checked before. Without, both ends take session keys
from the secret and the random numbers, and all after the proofs is authenticated (`macs`).

Each end's part is a generator (`Words`): it gives bytes to write and is sent bytes that were read,
so nothing here knows a socket, a thread or a clock.
"""

from __future__ import annotations

import hmac
import os
import struct
from collections.abc import Generator
from typing import Any, TypeVar

import msgpack

from flowscope.cluster.transport.encoding import poly1305
from flowscope.cluster.transport.encoding.macs import Macs, Seal
from flowscope.cluster.transport.encoding.tls import Tls
from flowscope.errors import (
    FailedPreconditionError,
    OpError,
    UnauthenticatedError,
    UnavailableError,
)
from flowscope.graph.lazy import frozen

_MAGIC = b"flowscope/2"
_SIZE = struct.Struct("<I")
#: Nobody has shown who they are so far: no word is longer.
_MOST_BYTES = 1 << 12
_RANDOM_BYTES = 32
_READ_BYTES = 1 << 14

Found = TypeVar("Found")
#: One end's part of a handshake.
Words = Generator[bytes, bytes, Found]


@frozen
class Hello:
    """What an initiator says first.

    Attributes:
        purpose: "control", "small", "bulk" or "run".
        group: A random number that the three connections of a peer share.
        sender, sender_incarnation: Who connects.
        receiver, receiver_incarnation: Who is meant.
        has_poly1305: Whether the sender can compute Poly1305.
    """

    purpose: str
    group: int
    sender: str
    sender_incarnation: int
    receiver: str
    receiver_incarnation: int
    has_poly1305: bool = False


_TYPES = (str, int, str, int, str, int, bool)


@frozen
class Met:
    """Whom an acceptor has met.

    Attributes:
        hello: What they have said.
        seal: What their bytes go through from now on.
    """

    hello: Hello
    seal: Seal


class _Open:
    """Bytes as they are: nobody has shown who they are so far."""

    def __init__(self) -> None:
        self._data = b""

    def seal(self, data: bytes) -> list[Any]:
        return [data]

    def feed(self, data: bytes) -> None:
        self._data += data

    def read(self, size: int) -> bytes:
        found, self._data = self._data[:size], self._data[size:]
        return found

    def check_read(self) -> None:
        """Raises UnauthenticatedError if something came that was not asked for."""
        if self._data:
            raise UnauthenticatedError("expected a handshake of flowscope, got too many bytes")


class _Talk:
    """Words on their way to and from bytes.

    Args:
        tls: What seals them, after its own handshake; None for nothing.
    """

    def __init__(self, tls: Tls | None) -> None:
        self._seal: Any = _Open() if tls is None else tls
        self._unsent = b"" if tls is None else tls.unsent()

    def say(self, word: bytes) -> None:
        """Says a word; it is given with the next wish to hear."""
        self._unsent += b"".join(self._seal.seal(_SIZE.pack(len(word)) + word))

    def hear(self) -> Words[bytes]:
        """Returns the next word.

        Raises:
            UnauthenticatedError: if it is too long to be one.
        """
        (size,) = _SIZE.unpack((yield from self._take(_SIZE.size)))
        if size > _MOST_BYTES:
            raise UnauthenticatedError(
                f"expected a handshake of flowscope, got a word of {size} bytes"
            )
        return (yield from self._take(size))

    def _take(self, size: int) -> Words[bytes]:
        data = b""
        while len(data) < size:
            if more := self._seal.read(size - len(data)):
                data += more
                continue
            unsent, self._unsent = self._unsent, b""
            self._seal.feed((yield unsent))
        return data

    def sealed(self, keys: tuple[bytes, bytes], is_fast: bool) -> Seal:
        """The seal of the bytes that follow the proofs.

        Args:
            keys: The session keys of what this end sends, and of what it takes.
            is_fast: Whether both ends can compute Poly1305.
        """
        if isinstance(self._seal, _Open):
            self._seal.check_read()
            self._seal = Macs(*keys, is_fast)
        found: Seal = self._seal
        return found


def _proof(secret: bytes, who: bytes, *said: bytes) -> bytes:
    text = b"".join(_SIZE.pack(len(word)) + word for word in (_MAGIC, who, *said))
    return hmac.digest(secret, text, "sha256")


def introduce(hello: Hello, secret: bytes, tls: Tls | None = None) -> Words[Seal]:
    """Says hello to whoever listens; returns what bytes go through afterwards.

    Raises:
        UnauthenticatedError: if the other end does not know the secret.
        FailedPreconditionError, UnavailableError: if it does not take the connection.
        DataLossError: if somebody has changed its last word.
    """
    if tls is not None:
        yield from tls.shake_hands()
    talk = _Talk(tls)
    fields = [getattr(hello, name) for name in Hello.__annotations__]
    word = _MAGIC + msgpack.packb([*fields, os.urandom(_RANDOM_BYTES)])
    talk.say(word)
    answer = yield from talk.hear()
    random, proof = answer[: _RANDOM_BYTES + 1], answer[_RANDOM_BYTES + 1 :]
    if not hmac.compare_digest(proof, _proof(secret, b"acceptor", word, random)):
        raise UnauthenticatedError(
            f"{hello.receiver} does not know this cluster's secret: it belongs to another one"
        )
    talk.say(_proof(secret, b"initiator", word, random))
    keys = _session_keys(secret, word, random)
    seal = talk.sealed(keys, bool(random[-1]))
    taken = yield from talk.hear()
    if taken:
        kind = UnavailableError if taken[:1] == b"U" else FailedPreconditionError
        raise kind(taken[1:].decode(errors="replace"))
    return seal


def meet(secret: bytes, tls: Tls | None = None) -> Words[Met]:
    """Hears who has connected, and checks that they know the secret.

    Raises:
        UnauthenticatedError: if they do not, or if what they say is no hello.
    """
    if tls is not None:
        yield from tls.shake_hands()
    talk = _Talk(tls)
    word = yield from talk.hear()
    hello = _read(word)
    is_fast = hello.has_poly1305 and poly1305.is_available()
    random = os.urandom(_RANDOM_BYTES) + bytes([is_fast])
    talk.say(random + _proof(secret, b"acceptor", word, random))
    proof = yield from talk.hear()
    if not hmac.compare_digest(proof, _proof(secret, b"initiator", word, random)):
        raise UnauthenticatedError("whoever has connected does not know this cluster's secret")
    initiator, acceptor = _session_keys(secret, word, random)
    return Met(hello, talk.sealed((acceptor, initiator), is_fast))


def _session_keys(secret: bytes, *said: bytes) -> tuple[bytes, bytes]:
    """Returns the keys of what the initiator and of what the acceptor sends after the proofs."""
    return (
        _proof(secret, b"initiator's session key", *said),
        _proof(secret, b"acceptor's session key", *said),
    )


#: What tells that a connection is taken.
ACCEPTED = _SIZE.pack(0)


def refusal(error: OpError) -> bytes:
    """The bytes that tell a peer why its connection is refused."""
    letter = b"U" if isinstance(error, UnavailableError) else b"F"
    word = letter + error.message.encode()[: _MOST_BYTES - 1]
    return _SIZE.pack(len(word)) + word


def _read(word: bytes) -> Hello:
    if not word.startswith(_MAGIC):
        raise UnauthenticatedError(
            "expected a handshake of this version of flowscope, got something else"
        )
    try:
        fields: Any = msgpack.unpackb(word[len(_MAGIC) :])[:-1]
    except Exception as e:  # msgpack raises many kinds of them
        raise UnauthenticatedError("expected a handshake of flowscope, got broken data") from e
    if tuple(map(type, fields)) != _TYPES:
        raise UnauthenticatedError("expected a handshake of flowscope, got other fields")
    return Hello(*fields)


__all__ = ["ACCEPTED", "Hello", "Met", "Words", "introduce", "meet", "refusal"]
