"""Images in files' formats: PNG, JPEG, BMP and GIF, to arrays and back, with Pillow.

Pillow is an extra: `pip install flowscope[images]`. The sizes that an image's first bytes tell are
checked before anything is decoded, so that a small file cannot ask for all memory.
"""

from __future__ import annotations

import io
import struct
from types import ModuleType
from typing import Any

import numpy as np

from flowscope.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.core.build import apply
from flowscope.ops.strings.string_op import as_strings, check_string

__all__ = [
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "is_jpeg",
]

#: The most pixels of an image, of all frames of an animation: what Pillow takes without a warning.
MOST_PIXELS = (1 << 30) // 4 // 3
_BEGINNINGS = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff", "gif": b"GIF8", "bmp": b"BM"}
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
#: Segments of a JPEG that tell its size: all of C0 to CF but tables and a reserved one.
_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class _ImageOp(Op, abstract=True, is_differentiable=False, devices=("CPU",)):
    """Base of ops on images in files' formats."""


def _check_contents(contents: Spec) -> None:
    check_string(contents)
    if not compatible((), contents.shape):
        raise expected("an image's bytes as a scalar", f"shape {text(contents.shape)}")


@frozen
class DecodeImage(_ImageOp):
    """The pixels of an image.

    Attributes: the `formats` that it may have; the number of `channels`, 0 for those of the image;
        the `dtype` of pixels, floats from 0 to 1; the rank, 4 with an axis of frames, 3 without, 0
        if it depends on the image; the divisor of a JPEG's lengths.

    Shapes: contents [] -> [height, width, channels] or [frames, height, width, 3]
    Raises: InvalidArgumentError if the bytes are no such image, or it has too many pixels;
        FailedPreconditionError if Pillow is not installed.
    """

    formats: tuple[str, ...]
    channels: int
    dtype: DType
    rank: int
    ratio: int = 1

    def infer(self, contents: Spec) -> Spec:
        _check_contents(contents)
        channels = 3 if self.rank == 4 else self.channels or None
        frames = (None,) if self.rank == 4 else ()
        return Spec(self.dtype, (*frames, None, None, channels) if self.rank else None)

    def kernel(self, xp: ArrayModule, contents: Array) -> Array:
        data = bytes(contents)
        form = _format(data)
        if form not in self.formats:
            wanted = " or ".join(f.upper() for f in self.formats)
            raise expected(f"the bytes of a {wanted} image", form.upper() or repr(data[:8]))
        height, width, _ = dimensions(data, form)
        if not 0 < height * width <= MOST_PIXELS:
            raise expected(f"1 to {MOST_PIXELS} pixels of an image", f"{height} x {width}")
        with _opened(data, form) as image:
            if image.size != (width, height):
                raise expected(f"one size of an image, {height} x {width}", image.size)
            if form == "gif":
                frames = self._frames(image)
                return self._converted(frames if self.rank in (0, 4) else frames[0])
            return self._converted(self._pixels(image, data, form))

    def _frames(self, image: Any) -> Array:
        most = MOST_PIXELS // (image.size[0] * image.size[1])
        if image.n_frames > (most if self.rank in (0, 4) else 1):
            raise expected(f"{most if self.rank != 3 else 1} frames at most", image.n_frames)
        if self.channels not in (0, 3):
            raise expected("3 channels of a GIF", self.channels)
        out = []
        for i in range(image.n_frames):
            image.seek(i)
            out.append(np.asarray(image.convert("RGB")))
        return np.stack(out)

    def _pixels(self, image: Any, data: bytes, form: str) -> Array:
        if form == "jpeg" and self.ratio > 1:
            width, height = image.size
            image.draft(None, (max(width // self.ratio, 1), max(height // self.ratio, 1)))
        if form == "png" and data[24] == 16 and self.dtype is dtypes.uint16 and data[25] != 0:
            raise UnimplementedError("expected 8 bits per channel, or 16 of a grey PNG, got 16")
        if image.mode.startswith("I") and self.channels in (0, 1):
            return np.asarray(image).astype(np.uint16)[..., None]
        if image.mode.startswith("I"):
            grey = (np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8)
            return np.repeat(grey[..., None], 3, 2)[..., : self.channels]
        has_alpha = "A" in image.mode or "transparency" in image.info
        own = {"1": 1, "L": 2 if has_alpha else 1, "LA": 2}.get(image.mode, 4 if has_alpha else 3)
        count = self.channels or own
        array = np.asarray(image if image.mode == _MODES[count] else image.convert(_MODES[count]))
        return array.reshape(*array.shape[:2], count)

    def _converted(self, pixels: Array) -> Array:
        if self.dtype is dtypes.float32:
            most = np.float32(np.iinfo(pixels.dtype).max)
            return pixels.astype(np.float32) / most
        if self.dtype is dtypes.uint16 and pixels.dtype == np.uint8:
            return pixels.astype(np.uint16) * np.uint16(257)
        if self.dtype is dtypes.uint8 and pixels.dtype == np.uint16:
            return (pixels >> 8).astype(np.uint8)
        return pixels


@frozen
class EncodeImage(_ImageOp):
    """An image's bytes in a file's format.

    Attributes: the `format`, "PNG" or "JPEG"; `options` for Pillow, by name.

    Shapes: [height, width, channels] -> []
    Raises: InvalidArgumentError if there is no such number of channels.
    """

    format: str
    channels: tuple[int, ...]
    options: tuple[tuple[str, Any], ...]

    def infer(self, image: Spec) -> Spec:
        if image.rank not in (None, 3):
            raise expected("an image [height, width, channels]", f"shape {text(image.shape)}")
        if image.shape is not None and image.shape[2] is not None:
            self._check(image.shape[2])
        return Spec(dtypes.string, ())

    def kernel(self, xp: ArrayModule, image: Array) -> Any:
        self._check(image.shape[2])
        if not image.size:
            raise expected("an image that is not empty", image.shape)
        if image.dtype == np.uint16 and image.shape[2] != 1:
            raise UnimplementedError("expected one channel of uint16, got more")
        pixels = np.ascontiguousarray(image[..., 0] if image.shape[2] == 1 else image)
        out = io.BytesIO()
        _pillow().fromarray(pixels).save(out, self.format, **dict(self.options))
        return out.getvalue()

    def _check(self, channels: int) -> None:
        if channels not in self.channels:
            raise expected(f"{' or '.join(map(str, self.channels))} channels", channels)


@frozen
class ExtractJpegShape(_ImageOp):
    """The height, width and channels of a JPEG, of which nothing is decoded.

    Shapes: contents [] -> [3]
    """

    dtype: DType

    def infer(self, contents: Spec) -> Spec:
        _check_contents(contents)
        return Spec(self.dtype, (3,))

    def kernel(self, xp: ArrayModule, contents: Array) -> Array:
        data = bytes(contents)
        if _format(data) != "jpeg":
            raise expected("the bytes of a JPEG image", repr(data[:8]))
        return np.array(dimensions(data, "jpeg"), self.dtype.np_dtype)


@frozen
class IsJpeg(_ImageOp):
    """Whether bytes begin as those of a JPEG.

    Shapes: contents [] -> []
    """

    def infer(self, contents: Spec) -> Spec:
        _check_contents(contents)
        return Spec(dtypes.bool_, ())

    def kernel(self, xp: ArrayModule, contents: Array) -> Array:
        return np.bool_(_format(bytes(contents)) == "jpeg")


def _format(data: bytes) -> str:
    return next((f for f, begin in _BEGINNINGS.items() if data.startswith(begin)), "")


def dimensions(data: bytes, form: str) -> tuple[int, int, int]:
    """Height, width, and channels (of a JPEG; else 0), from an image's first bytes.

    Raises:
        InvalidArgumentError: if it ends before it tells them.
    """
    try:
        if form == "jpeg":
            return _jpeg_dimensions(data)
        if form == "png":
            width, height = struct.unpack_from(">II", data, 16)
        elif form == "gif":
            width, height = struct.unpack_from("<HH", data, 6)
        else:
            pair = "<HH" if data[14:18] == b"\x0c\0\0\0" else "<ii"  # the oldest header
            width, height = struct.unpack_from(pair, data, 18)
    except struct.error:
        raise expected(f"a whole {form.upper()} image", f"{len(data)} bytes") from None
    return abs(height), width, 0


def _jpeg_dimensions(data: bytes) -> tuple[int, int, int]:
    at = 2
    while True:
        marker, length = struct.unpack_from(">HH", data, at)
        if marker == 0xFFFF:  # a byte that fills up
            at += 1
        elif marker >> 8 != 0xFF:
            raise expected("a marker of a JPEG image", f"{marker:04x}")
        elif marker & 0xFF in _FRAME_MARKERS:
            height, width, channels = struct.unpack_from(">HHB", data, at + 5)
            return height, width, channels
        else:
            at += 2 + length


def _pillow() -> ModuleType:
    try:
        from PIL import Image  # an extra, loaded when an image is first decoded
    except ImportError as error:
        raise FailedPreconditionError(
            "images need Pillow, which is not installed: pip install flowscope[images]"
        ) from error
    return Image


class _opened:
    """A context with an image that Pillow has opened; its errors are the engine's."""

    def __init__(self, data: bytes, form: str) -> None:
        self._data, self._form = data, form

    def __enter__(self) -> Any:
        pillow = _pillow()
        try:
            self._image = pillow.open(io.BytesIO(self._data), formats=[self._form.upper()])
        except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
            raise self._damaged(error) from error
        return self._image

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._image.close()
        if isinstance(error, InvalidArgumentError | UnimplementedError):
            return
        bomb = _pillow().DecompressionBombError
        if isinstance(error, (OSError, ValueError, SyntaxError, struct.error, EOFError, bomb)):
            raise self._damaged(error) from error

    def _damaged(self, error: Any) -> InvalidArgumentError:
        return InvalidArgumentError(f"expected a whole {self._form.upper()} image, got: {error}")


def _decode(
    contents: Any, formats: str, channels: Any, allowed: tuple[int, ...], dtype: Any, rank: int,
    name: str | None, ratio: int = 1,
) -> Tensor:  # fmt: skip
    if channels not in allowed:
        raise expected(f"one of {', '.join(map(str, allowed))} as channels", channels)
    op = DecodeImage(tuple(formats.split()), int(channels), as_dtype(dtype), rank, ratio)
    return apply(op, as_strings(contents), name=name)


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Tensor:
    """The pixels of a PNG image [height, width, channels]; also of a JPEG or a GIF of one frame.

    Args:
        contents: The image's bytes, a scalar.
        channels: 1 for grey, 2 for grey and alpha, 3 for RGB, 4 for RGBA; 0 for those it has.
        dtype: uint8 or uint16.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: when it runs, if the bytes are no such image, or it is too large.
        FailedPreconditionError: when it runs, if Pillow is not installed.
    """
    if as_dtype(dtype).name not in ("uint8", "uint16"):
        raise expected_dtype("uint8 or uint16", as_dtype(dtype))
    return _decode(
        contents, "png jpeg gif", channels, (0, 1, 2, 3, 4), dtype, 3, name or "DecodePng"
    )


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """The pixels of a JPEG image [height, width, channels]; also of a PNG or a GIF of one frame.

    Args:
        contents: The image's bytes, a scalar.
        channels: 1 for grey, 3 for RGB; 0 for those it has.
        ratio: 1, 2, 4 or 8: what height and width are divided by.
        fancy_upscaling: True.
        try_recover_truncated: False.
        acceptable_fraction: 1.
        dct_method: "".
        name: Name of the operation.

    Raises:
        InvalidArgumentError: when it runs, as for `decode_png`.
        UnimplementedError: if an argument has another value than those named.
    """
    if (fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method) != (
        True, False, 1, "",
    ):  # fmt: skip
        raise UnimplementedError(
            "decode_jpeg has no other fancy_upscaling, try_recover_truncated, acceptable_fraction "
            "and dct_method than their defaults"
        )
    if ratio not in (1, 2, 4, 8):
        raise expected("a ratio of 1, 2, 4 or 8", ratio)
    return _decode(
        contents, "jpeg png gif", channels, (0, 1, 3), dtypes.uint8, 3, name or "DecodeJpeg", ratio
    )


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """The pixels of a BMP image, uint8 [height, width, channels].

    Args:
        contents: The image's bytes, a scalar.
        channels: 1, 3 or 4; 0 for those it has.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: when it runs, as for `decode_png`.
    """
    return _decode(contents, "bmp", channels, (0, 1, 3, 4), dtypes.uint8, 3, name or "DecodeBmp")


def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """The frames of a GIF image, uint8 [frames, height, width, 3].

    Args:
        contents: The image's bytes, a scalar.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: when it runs, as for `decode_png`.
    """
    return _decode(contents, "gif", 3, (3,), dtypes.uint8, 4, name or "DecodeGif")


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """The pixels of a PNG, JPEG, BMP or GIF image; a GIF has an axis of frames before the others.

    Args:
        contents: The image's bytes, a scalar.
        channels: Their number; 0 or None for those it has.
        dtype: uint8, uint16, or float32 from 0 to 1.
        name: Name of the operation.
        expand_animations: Whether a GIF has that axis; if not, it has to have one frame, and the
            rank of the result is known.

    Raises:
        InvalidArgumentError: when it runs, as for `decode_png`.
    """
    if as_dtype(dtype).name not in ("uint8", "uint16", "float32"):
        raise expected_dtype("uint8, uint16 or float32", as_dtype(dtype))
    rank = 0 if expand_animations else 3
    count = 0 if channels is None else channels
    return _decode(
        contents, "png jpeg bmp gif", count, (0, 1, 2, 3, 4), dtype, rank, name or "DecodeImage"
    )


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """An image's bytes as a PNG.

    Args:
        image: [height, width, channels]: uint8 with 1 to 4 channels, or uint16 with one.
        compression: 0 to 9; -1 for a default.
        name: Name of the operation.
    """
    value = convert_to_tensor(image)
    if value.dtype.name not in ("uint8", "uint16"):
        raise expected_dtype("an image of uint8 or uint16", value.dtype)
    if not -1 <= compression <= 9:
        raise expected("a compression from -1 to 9", compression)
    options = (("compress_level", int(compression)),) if compression >= 0 else ()
    return apply(EncodeImage("PNG", (1, 2, 3, 4), options), value, name=name or "EncodePng")


def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """An image's bytes as a JPEG.

    Args:
        image: uint8 [height, width, channels] with 1 or 3 channels.
        format: "grayscale" for 1 channel, "rgb" for 3, "" for either.
        quality: 0 to 100.
        progressive: Whether it becomes sharper while it loads.
        optimize_size: Whether more time is taken for fewer bytes.
        chroma_downsampling: Whether colours have half the resolution.
        density_unit: Of the densities: "in" for an inch, "cm" for a centimetre. The file has them
            per inch.
        x_density: Pixels per unit, in a row; above 0.
        y_density: The same in a column.
        xmp_metadata: A document of XMP that the file gets; "" for none.
        name: Name of the operation.
    """
    channels = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}.get(format)
    if channels is None:
        raise expected('"", "grayscale" or "rgb" as format', repr(format))
    if not 0 <= quality <= 100:
        raise expected("a quality from 0 to 100", quality)
    per_inch = {"in": 1.0, "cm": 2.54}.get(density_unit)
    if per_inch is None:
        raise expected('"in" or "cm" as density_unit', repr(density_unit))
    for what, density in (("x_density", x_density), ("y_density", y_density)):
        if not 0 < density * per_inch < 1 << 16:
            raise expected(f"{what} above 0 that a JPEG can hold", density)
    metadata = xmp_metadata.encode() if isinstance(xmp_metadata, str) else bytes(xmp_metadata)
    options = (
        ("dpi", (round(x_density * per_inch), round(y_density * per_inch))),
        *([("xmp", metadata)] if metadata else []),
        ("quality", int(quality)),
        ("progressive", int(progressive)),
        ("optimize", int(optimize_size)),
        ("subsampling", 2 if chroma_downsampling else 0),
    )
    value = convert_to_tensor(image, dtypes.uint8)
    return apply(EncodeImage("JPEG", channels, options), value, name=name or "EncodeJpeg")


def extract_jpeg_shape(
    contents: Any, output_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """The height, width and channels of a JPEG image [3], of which nothing is decoded.

    Args:
        contents: The image's bytes, a scalar.
        output_type: int32 or int64.
        name: Name of the operation.
    """
    dtype = as_dtype(output_type)
    if dtype.name not in ("int32", "int64"):
        raise expected_dtype("int32 or int64", dtype)
    return apply(ExtractJpegShape(dtype), as_strings(contents), name=name)


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether bytes, a scalar, begin as those of a JPEG image."""
    return apply(IsJpeg(), as_strings(contents), name=name)
