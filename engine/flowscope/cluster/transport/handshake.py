"""The first words on a connection: who is there, what for, and that both know the secret.

    initiator -> hello: what the connection is for, both names and incarnations, a random number
    acceptor  -> its random number, and a proof: HMAC of all that was said, by the secret
    initiator -> its own proof
    acceptor  -> that it takes the connection, or why not

Whoever does not know the secret is told so and is closed out before anything else is read. With TLS
all of it is sealed, and certificates have been checked before.
"""

from __future__ import annotations

import hmac
import os
import socket
import struct
from typing import Any

import msgpack

from flowscope.cluster.transport.tls import Tls
from flowscope.errors import (
    FailedPreconditionError,
    OpError,
    UnauthenticatedError,
    UnavailableError,
)
from flowscope.graph.lazy import frozen

_MAGIC = b"flowscope/1"
_SIZE = struct.Struct("<I")
#: The word that tells that a connection is taken.
ACCEPTED = _SIZE.pack(0)
#: Nobody has shown who they are so far: no word is longer.
_MOST_BYTES = 1 << 12
_RANDOM_BYTES = 32


@frozen
class Hello:
    """What an initiator says first.

    Attributes:
        purpose: "control", "small", "bulk" or "run".
        group: A random number that the three connections of a peer share.
        sender, sender_incarnation: Who connects.
        receiver, receiver_incarnation: Who is meant.
    """

    purpose: str
    group: int
    sender: str
    sender_incarnation: int
    receiver: str
    receiver_incarnation: int


_TYPES = (str, int, str, int, str, int)


class Talk:
    """Words over a socket that waits at most as long as its timeout says."""

    def __init__(self, sock: socket.socket, tls: Tls | None) -> None:
        self._socket = sock
        self._tls = tls

    def say(self, word: bytes) -> None:
        """Sends a word."""
        data = _SIZE.pack(len(word)) + word
        self._socket.sendall(data if self._tls is None else self._tls.seal([data]))

    def hear(self) -> bytes:
        """Returns the next word.

        Raises:
            UnauthenticatedError: if it is too long to be one.
        """
        (size,) = _SIZE.unpack(self._take(_SIZE.size))
        if size > _MOST_BYTES:
            raise UnauthenticatedError(
                f"expected a handshake of flowscope, got a word of {size} bytes"
            )
        return self._take(size)

    def _take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._tls.read(size - len(data)) if self._tls is not None else b""
            if not more:
                more = self._socket.recv(size - len(data) if self._tls is None else 1 << 14)
                if not more:
                    raise ConnectionResetError("the connection was closed in the handshake")
                if self._tls is not None:
                    self._tls.feed(more)
                    continue
            data += more
        return data


def _proof(secret: bytes, who: bytes, *said: bytes) -> bytes:
    text = b"".join(_SIZE.pack(len(word)) + word for word in (_MAGIC, who, *said))
    return hmac.digest(secret, text, "sha256")


def introduce(talk: Talk, hello: Hello, secret: bytes) -> None:
    """Says hello to whoever listens.

    Raises:
        UnauthenticatedError: if the other end does not know the secret.
        FailedPreconditionError, UnavailableError: if it does not take the connection.
        OSError: if it does not answer.
    """
    fields = [getattr(hello, name) for name in Hello.__annotations__]
    word = _MAGIC + msgpack.packb([*fields, os.urandom(_RANDOM_BYTES)])
    talk.say(word)
    answer = talk.hear()
    random, proof = answer[:_RANDOM_BYTES], answer[_RANDOM_BYTES:]
    if not hmac.compare_digest(proof, _proof(secret, b"acceptor", word, random)):
        raise UnauthenticatedError(
            f"{hello.receiver} does not know this cluster's secret: it belongs to another one"
        )
    talk.say(_proof(secret, b"initiator", word, random))
    taken = talk.hear()
    if taken:
        kind = UnavailableError if taken[:1] == b"U" else FailedPreconditionError
        raise kind(taken[1:].decode(errors="replace"))


def meet(talk: Talk, secret: bytes) -> Hello:
    """Hears who has connected, and checks that they know the secret.

    Raises:
        UnauthenticatedError: if they do not, or if what they say is no hello.
        OSError: if they do not go on.
    """
    word = talk.hear()
    hello = _read(word)
    random = os.urandom(_RANDOM_BYTES)
    talk.say(random + _proof(secret, b"acceptor", word, random))
    if not hmac.compare_digest(talk.hear(), _proof(secret, b"initiator", word, random)):
        raise UnauthenticatedError("whoever has connected does not know this cluster's secret")
    return hello


def refuse(talk: Talk, error: OpError) -> None:
    """Tells why the connection is not taken."""
    letter = b"U" if isinstance(error, UnavailableError) else b"F"
    talk.say(letter + error.message.encode()[: _MOST_BYTES - 1])


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


__all__ = ["ACCEPTED", "Hello", "Talk", "introduce", "meet", "refuse"]
