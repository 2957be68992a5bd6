# ruff: noqa: E501
# fmt: off
"""Rows of summaries; what they must give is what TensorFlow 2.21 gives, except for images' bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import In, Table

import flowscope as fs
from flowscope.graph.messages.event_messages import Summary
from flowscope.ops.host.summary_values import png

ROWS = Table()


def row(name: str, call: Any, reference: bytes, *inputs: In, **options: Any) -> None:
    out = np.array([reference], object)
    ROWS.row(name, lambda *xs: fs.reshape(call(*xs), [1]), lambda *_: out, *inputs, **{"order": 0, "dtypes": ("float32",), **options})



_HISTOGRAM = (
    b"\n\xa7\x01\n\x01h*\xa1\x01\t\x00\x00\x00\x00\x00\x00\x14\xc0\x11\x00\x00\x00\xe0\xe4\x1aKD\x19\x00\x00\x00\x00\x00\x00\x14@!\x00\x00\x00\xe0\xe4\x1aKD) \xfeP\xd4x\xf5\xa6H28\xd8\xb2v\xa95f\x14\xc0!\xd1\x0e\x9av\x8b\x12\xc0\x11\xea-\x81\x99\x97q\xbd\x00\x00\x00\x00\x00\x00\x00\x00\x11\xea-\x81\x99\x97q=LT\x9f\x02#\x83\x15D\xff\xff\xff\xff\xff\xff\xef\x7f:8"
    b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0?\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0?\x00\x00\x00\x00\x00\x00\x00@\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0?"
)
_IMAGE = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)
_PICTURE = Summary(value=[Summary.Value(tag="i/image", image=Summary.Image(height=2, width=2, colorspace=3, encoded_image_string=png(_IMAGE[0])))])

row("scalar_summary", lambda x: fs.summary.scalar("a", x), b"\n\x08\n\x01a\x15\x00\x00\xc0?", In(value=1.5), dtypes=("float16", "float32", "float64"))
row("scalar_summary_zero", lambda x: fs.summary.scalar("a", x), b"\n\x08\n\x01a\x15\x00\x00\x00\x00", In(value=0), dtypes=("uint8", "int64", "float32"))
row("scalar_summary_nan", lambda x: fs.summary.scalar("q_6", x), b"\n\n\n\x03q_6\x15\x00\x00\xc0\x7f", In(value=np.nan))
row("histogram_summary", lambda x: fs.summary.histogram("h", x), _HISTOGRAM, In(value=[[-1e-13, 0, 1e-12, 1e21, -5]]))
row("histogram_summary_empty", lambda x: fs.summary.histogram("h", x),
    b"\n+\n\x01h*&\t\xff\xff\xff\xff\xff\xff\xef\x7f\x11\xff\xff\xff\xff\xff\xff\xef\xff2\x08\xff\xff\xff\xff\xff\xff\xef\x7f:\x08\x00\x00\x00\x00\x00\x00\x00\x00", In((0,), value=[]))
row("histogram_summary_integers", lambda x: fs.summary.histogram("h", x),
    b'\n\x87\x01\n\x01h*\x81\x01\t\x00\x00\x00\x00\x00\x00\x08\xc0\x11\x00\x00\x00\x00\x00\x00\x14@\x19\x00\x00\x00\x00\x00\x00\x00@!\x00\x00\x00\x00\x00\x00\x00@)\x00\x00\x00\x00\x00\x00A@2(\r\x9c\xc5\xa0)U\t\xc0h\xbc\x105\x9a\x07\x07\xc0!\xd1\x0e\x9av\x8b\x12@\xd8\xb2v\xa95f\x14@\xff\xff\xff\xff\xff\xff\xef\x7f:('
    b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0?\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0?\x00\x00\x00\x00\x00\x00\x00\x00", In(value=[-3, 5]), dtypes=("int8", "int32"))
row("image_summary", lambda x: fs.summary.image("i", x, max_outputs=1), _PICTURE.SerializeToString(), In(value=_IMAGE), dtypes=("uint8",))
row("image_summary_none", lambda x: fs.summary.image("i", x), b"", In((0, 2, 2, 1), value=np.zeros((0, 2, 2, 1))))
row("text_summary", lambda x: fs.summary.text("sc/t2", x), b"\n!\n\x05sc/t2B\x0e\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x01bJ\x08\n\x06\n\x04text", In(value=[b"a", b"b"], dtype="object"))
row("tensor_summary", lambda x: fs.summary.tensor_summary("sc/ts", x, "desc", display_name="DN"),
    b'\n\'\n\x05sc/tsB\x12\x08\x01\x12\x04\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@J\n\x12\x02DN\x1a\x04desc', In(value=[1, 2]))
row("tensor_summary_half", lambda x: fs.summary.tensor_summary("t_7", x), b'\n\x17\n\x03t_7B\x0e\x08\x13\x12\x04\x12\x02\x08\x02"\x04\x00<\x00@J\x00', In(value=[1, 2]), dtypes=("float16",))
row("tensor_summary_empty", lambda x: fs.summary.tensor_summary("t_6", x), b"\n\x13\n\x03t_6B\n\x08\x03\x12\x06\x12\x00\x12\x02\x08\x02J\x00", In((0, 2), value=np.zeros((0, 2))), dtypes=("int32",))
row("merge_summary", lambda x: fs.summary.merge([fs.summary.scalar("a", x), fs.summary.scalar("b", x)]),
    b"\n\x08\n\x01a\x15\x00\x00\xc0?\n\x08\n\x01b\x15\x00\x00\xc0?", In(value=1.5))
