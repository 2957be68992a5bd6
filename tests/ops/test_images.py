"""Images in files' formats, to arrays and back."""

from __future__ import annotations

import io
import struct
import sys
import zlib

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)

Image = pytest.importorskip("PIL.Image")
MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def pixels(channels: int, dtype: str = "uint8", shape: tuple[int, int] = (5, 7)) -> np.ndarray:
    most = np.iinfo(dtype).max
    return np.random.default_rng(1).integers(0, most + 1, (*shape, channels), dtype)


def packed(array: np.ndarray, form: str, **options) -> bytes:
    out = io.BytesIO()
    flat = array[..., 0] if array.shape[2] == 1 else array
    Image.fromarray(flat).save(out, form, **options)
    return out.getvalue()


def run(make, *values):
    with fs.Graph().as_default(), fs.Session() as sess:
        return sess.run(make(*[fs.constant(v) for v in values]))


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_goes_there_and_back(mode: str, channels: int) -> None:
    given = pixels(channels)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        data = fs.image.encode_png(given)
        same, grey = fs.image.decode_png(data), fs.io.decode_png(data, channels=1)
        found, first = sess.run([same, grey])
        packed_by_us = sess.run(data)
    np.testing.assert_array_equal(found, given)
    assert first.shape == (5, 7, 1)
    with Image.open(io.BytesIO(packed_by_us)) as image:
        assert image.mode == MODES[channels]


def test_sixteen_bits() -> None:
    given = pixels(1, "uint16")
    data = run(fs.image.encode_png, given)
    np.testing.assert_array_equal(
        run(lambda d: fs.image.decode_png(d, dtype="uint16"), data), given
    )
    np.testing.assert_array_equal(run(fs.image.decode_png, data), (given >> 8).astype("u1"))
    eight = run(fs.image.encode_png, pixels(3))
    wide = run(lambda d: fs.image.decode_png(d, dtype="uint16"), eight)
    np.testing.assert_array_equal(wide, pixels(3).astype("u2") * 257)


def test_jpeg() -> None:
    smooth = np.stack([np.add.outer(np.arange(32), np.arange(48))] * 3, 2).astype("u1")
    data = run(fs.image.encode_jpeg, smooth)
    found = run(fs.image.decode_jpeg, data)
    assert np.abs(found.astype(int) - smooth).max() <= 3
    assert run(lambda d: fs.image.decode_jpeg(d, ratio=4), data).shape == (8, 12, 3)
    assert run(lambda d: fs.image.decode_jpeg(d, channels=1), data).shape == (32, 48, 1)
    assert run(fs.image.extract_jpeg_shape, data).tolist() == [32, 48, 3]
    grey = run(lambda x: fs.image.encode_jpeg(x, "grayscale", progressive=True), smooth[..., :1])
    assert run(fs.image.extract_jpeg_shape, grey).tolist() == [32, 48, 1]
    assert [bool(run(fs.image.is_jpeg, d)) for d in (data, b"no", b"")] == [True, False, False]
    low = run(lambda x: fs.image.encode_jpeg(x, quality=20, optimize_size=True), smooth)
    assert len(low) < len(data)


def test_bmp_and_gif() -> None:
    given = pixels(3)
    np.testing.assert_array_equal(run(fs.image.decode_bmp, packed(given, "BMP")), given)
    frames = [Image.fromarray(np.full((4, 6, 3), 60 * i, "u1")) for i in range(3)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    found = run(fs.image.decode_gif, out.getvalue())
    assert found.shape == (3, 4, 6, 3)
    assert [f.mean() for f in found] == [0, 60, 120]
    np.testing.assert_array_equal(run(fs.image.decode_image, out.getvalue()), found)
    with pytest.raises(InvalidArgumentError, match="expected 1 frames at most, got 3"):
        run(lambda d: fs.image.decode_image(d, expand_animations=False), out.getvalue())


def test_any_image_and_its_shape() -> None:
    given = pixels(3)
    for form in ("PNG", "BMP"):
        np.testing.assert_array_equal(run(fs.image.decode_image, packed(given, form)), given)
    parts = run(lambda d: fs.image.decode_image(d, dtype="float32"), packed(given, "PNG"))
    np.testing.assert_allclose(parts, given / np.float32(255), rtol=1e-6)
    data = fs.placeholder(fs.string, [])
    assert fs.image.decode_png(data, channels=3).shape.as_list() == [None, None, 3]
    assert fs.image.decode_gif(data).shape.as_list() == [None, None, None, 3]
    assert fs.image.decode_image(data).shape.ndims is None
    assert fs.image.decode_image(data, expand_animations=False).shape.ndims == 3


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that tells of many pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 99))


def two_sizes(other: int) -> bytes:
    """A JPEG that tells its size, 5 x 7, and then another one."""
    data = packed(pixels(3), "JPEG")
    at = data.index(b"\xff\xc0")
    length = 2 + struct.unpack_from(">H", data, at + 2)[0]
    again = bytearray(data[at : at + length])
    struct.pack_into(">HH", again, 5, other, other)
    return data[: at + length] + bytes(again) + data[at + length :]


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (bomb(2**31 - 1, 2**31 - 1), "pixels of an image, got 2147483647 x 2147483647"),
        (bomb(0, 5), "pixels of an image, got 5 x 0"),
        (bomb(30, 30), "expected a whole PNG image"),
        (b"\x89PNG\r\n\x1a\n", "expected a whole PNG image, got 8 bytes"),
        (b"\xff\xd8\xff\xe0\0", "expected a whole JPEG image"),
        (b"\xff\xd8\xff\xe0\0\0" + b"\0" * 9, "expected a marker of a JPEG"),
        (two_sizes(60000), "expected a whole JPEG image"),
        (two_sizes(9), "expected one size of an image, 5 x 7"),
        (b"GIF89a\1\0\1\0", "expected a whole GIF image"),
        (b"BM" + b"\1" * 20, "expected a whole BMP image"),
        (packed(pixels(3), "PNG")[:-40], "expected a whole PNG image"),
        (b"neither", "expected the bytes of a PNG or JPEG or BMP or GIF image"),
    ],
)
def test_hostile_and_damaged_images(data: bytes, match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        run(fs.image.decode_image, data)


def test_wrong_arguments() -> None:
    with pytest.raises(InvalidArgumentError, match="channels"):
        fs.image.decode_jpeg(b"", channels=4)
    with pytest.raises(InvalidArgumentError, match="ratio"):
        fs.image.decode_jpeg(b"", ratio=3)
    with pytest.raises(UnimplementedError, match="fancy_upscaling"):
        fs.image.decode_jpeg(b"", fancy_upscaling=False)
    with pytest.raises(DTypeError, match="uint8"):
        fs.image.decode_png(b"", dtype="int32")
    with pytest.raises(InvalidArgumentError, match="1 or 3 channels, got 2"):
        fs.image.encode_jpeg(np.zeros((2, 2, 2), "u1"))
    with pytest.raises(InvalidArgumentError, match="compression"):
        fs.image.encode_png(np.zeros((2, 2, 1), "u1"), compression=10)


def test_without_pillow_the_error_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(FailedPreconditionError, match=r"pip install flowscope\[images\]"):
        run(fs.image.decode_png, bomb(3, 3))


def test_the_density_and_the_metadata_of_a_jpeg(sess) -> None:
    pixels = np.zeros((4, 4, 3), "u1")

    def info(**given):
        return Image.open(io.BytesIO(sess.run(fs.image.encode_jpeg(pixels, **given)))).info

    assert info()["dpi"] == (300, 300)
    found = info(density_unit="cm", x_density=100, y_density=50, xmp_metadata="<x/>")
    assert found["dpi"] == (254, 127) and found["xmp"] == b"<x/>"
    for wrong in ({"density_unit": "m"}, {"x_density": 0}, {"y_density": 1 << 16}):
        with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
            fs.image.encode_jpeg(pixels, **wrong)
