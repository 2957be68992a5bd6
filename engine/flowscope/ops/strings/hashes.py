"""Hashes of bytes, the same as TensorFlow's: buckets made by one are those of the other.

Sources: MurmurHash64A (A. Appleby), FarmHash's Fingerprint64 (G. Pike 2014), SipHash-2-4 (Aumasson
and Bernstein 2012). All arithmetic is modulo 2 ** 64.
"""

from __future__ import annotations

_ALL = (1 << 64) - 1


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _rotated(v: int, right: int) -> int:
    v &= _ALL
    return (v >> right | v << (64 - right)) & _ALL


# -- Murmur ---------------------------------------------------------------------------------------


def murmur(data: bytes, seed: int = 0xDECAFCAFFE) -> int:
    """Returns MurmurHash64A of the bytes."""
    m, n = 0xC6A4A7935BD1E995, len(data)
    h = (seed ^ n * m) & _ALL
    for at in range(0, n - 7, 8):
        k = _word(data, at) * m & _ALL
        h = (h ^ (k ^ k >> 47) * m & _ALL) * m & _ALL
    if n % 8:
        h = (h ^ int.from_bytes(data[n - n % 8 :], "little")) * m & _ALL
    h = (h ^ h >> 47) * m & _ALL
    return h ^ h >> 47


# -- FarmHash -------------------------------------------------------------------------------------

_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _mixed(v: int) -> int:
    v &= _ALL
    return v ^ v >> 47


def _pair(u: int, v: int, mul: int) -> int:
    """Returns a hash of two words."""
    a = _mixed((u ^ v) * mul)
    return _mixed((v ^ a) * mul) * mul & _ALL


def farm(data: bytes) -> int:
    """Returns FarmHash's Fingerprint64 of the bytes."""
    n = len(data)
    if n <= 16:
        return _farm_16(data)
    if n <= 32:
        return _farm_32(data)
    return _farm_64(data) if n <= 64 else _farm_long(data)


def _farm_16(s: bytes) -> int:
    n = len(s)
    mul = _K2 + 2 * n
    if n >= 8:
        a, b = (_word(s, 0) + _K2) & _ALL, _word(s, n - 8)
        return _pair((_rotated(b, 37) * mul + a) & _ALL, (_rotated(a, 25) + b) * mul & _ALL, mul)
    if n >= 4:
        first, last = (int.from_bytes(part, "little") for part in (s[:4], s[-4:]))
        return _pair(n + (first << 3), last, mul)
    if n:
        y, z = s[0] + (s[n >> 1] << 8), n + (s[-1] << 2)
        return _mixed(y * _K2 & _ALL ^ z * _K0 & _ALL) * _K2 & _ALL
    return _K2


def _ends(s: bytes) -> tuple[int, int, int, int]:
    n = len(s)
    mul = _K2 + 2 * n
    return _word(s, 0), _word(s, 8), _word(s, n - 8) * mul & _ALL, _word(s, n - 16) * _K2 & _ALL


def _farm_32(s: bytes) -> int:
    a, b, c, d = _ends(s)
    a = a * _K1 & _ALL
    u = _rotated(a + b, 43) + _rotated(c, 30) + d
    return _pair(u & _ALL, (a + _rotated(b + _K2, 18) + c) & _ALL, _K2 + 2 * len(s))


def _farm_64(s: bytes) -> int:
    n = len(s)
    mul = _K2 + 2 * n
    a, b, c, d = _ends(s)
    a = a * _K2 & _ALL
    y = (_rotated(a + b, 43) + _rotated(c, 30) + d) & _ALL
    z = _pair(y, (a + _rotated(b + _K2, 18) + c) & _ALL, mul)
    e, f = _word(s, 16) * mul & _ALL, _word(s, 24)
    g, h = (y + _word(s, n - 32)) * mul & _ALL, (z + _word(s, n - 24)) * mul & _ALL
    u = _rotated(e + f, 43) + _rotated(g, 30) + h
    return _pair(u & _ALL, (e + _rotated(f + a, 18) + g) & _ALL, mul)


def _weak(s: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Returns two words that stir 32 bytes into a and b."""
    w, x, y, z = (_word(s, at + 8 * i) for i in range(4))
    a += w
    b = _rotated(b + a + z, 21)
    c = a
    a += x + y
    b += _rotated(a, 44)
    return (a + z) & _ALL, (b + c) & _ALL


class _Farm:
    """The state of a long FarmHash."""

    def __init__(self, s: bytes) -> None:
        self.s = s
        seed = 81
        self.y = (seed * _K1 + 113) & _ALL
        self.z = _mixed(self.y * _K2 + 113) * _K2 & _ALL
        self.v, self.w = (0, 0), (0, 0)
        self.x = (seed * _K2 + _word(s, 0)) & _ALL

    def block(self, at: int, mul: int, weight: int) -> None:
        """Stirs in 64 bytes; the last block has another multiplier and weight."""
        s, (v0, v1), (w0, w1) = self.s, self.v, self.w
        x = _rotated(self.x + self.y + v0 + _word(s, at + 8), 37) * mul & _ALL
        y = _rotated(self.y + v1 + _word(s, at + 48), 42) * mul & _ALL
        x ^= w1 * weight & _ALL
        y = (y + v0 * weight + _word(s, at + 40)) & _ALL
        z = _rotated(self.z + w0, 33) * mul & _ALL
        self.v = _weak(s, at, v1 * mul & _ALL, (x + w0) & _ALL)
        self.w = _weak(s, at + 32, (z + w1) & _ALL, (y + _word(s, at + 16)) & _ALL)
        self.x, self.y, self.z = z, y, x


def _farm_long(s: bytes) -> int:
    n, state = len(s), _Farm(s)
    for at in range(0, (n - 1) // 64 * 64, 64):
        state.block(at, _K1, 1)
    mul = _K1 + ((state.z & 0xFF) << 1)
    w0 = state.w[0] + ((n - 1) & 63)
    v0 = (state.v[0] + w0) & _ALL
    state.v, state.w = (v0, state.v[1]), ((w0 + v0) & _ALL, state.w[1])
    state.block(n - 64, mul, 9)
    (v0, v1), (w0, w1) = state.v, state.w
    u = _pair(v0, w0, mul) + _mixed(state.y) * _K0 + state.z
    return _pair(u & _ALL, (_pair(v1, w1, mul) + state.x) & _ALL, mul)


# -- SipHash --------------------------------------------------------------------------------------


def sip(data: bytes, key: tuple[int, int]) -> int:
    """Returns SipHash-2-4 of the bytes, keyed by two words."""
    k0, k1 = key[0] & _ALL, key[1] & _ALL
    v = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]
    n = len(data)
    padded = data + bytes(7 - n % 8) + bytes([n & 0xFF])
    for at in range(0, len(padded), 8):
        word = _word(padded, at)
        v[3] ^= word
        _sip_rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xFF
    _sip_rounds(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _sip_rounds(v: list[int], count: int) -> None:
    for _ in range(count):
        v[0] = (v[0] + v[1]) & _ALL
        v[1] = _rotated(v[1], 51) ^ v[0]
        v[0] = _rotated(v[0], 32)
        v[2] = (v[2] + v[3]) & _ALL
        v[3] = _rotated(v[3], 48) ^ v[2]
        v[0] = (v[0] + v[3]) & _ALL
        v[3] = _rotated(v[3], 43) ^ v[0]
        v[2] = (v[2] + v[1]) & _ALL
        v[1] = _rotated(v[1], 47) ^ v[2]
        v[2] = _rotated(v[2], 32)
