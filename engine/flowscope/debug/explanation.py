"""Explanations: what an operation does, in short sentences, and what is known of its values."""

from __future__ import annotations

from html import escape
from typing import Literal

from flowscope.debug.statistics import Picture, Statistics
from flowscope.graph.lazy import frozen
from flowscope.graph.values.shapes import Dims, text as shape_text

#: What a sentence is about.
Topic = Literal["computes", "step", "device", "cost", "made", "gradient", "block", "values"]
#: "held": of the step that is held; "recorded": of a step of the past; "variable": as it is now;
#: "constant": known before any step; "": it is not known.
Source = Literal["held", "recorded", "variable", "constant", ""]


@frozen
class Sentence:
    """A sentence of an explanation.

    Attributes:
        topic: What it is about.
        text: The sentence.
    """

    topic: Topic
    text: str


@frozen
class ExplainedTensor:
    """An input or an output of the operation.

    Attributes:
        role: Which of the two.
        name: The tensor's name.
        dtype: Its dtype's name.
        shape: Its static shape.
        source: Where its value is known from, "" where it is not.
        why: What to know of the value, as a sentence: which step it is of, or why there is none.
        statistics: Numbers of its elements; None where its value is not known.
        picture: Its elements as grey levels; None of strings, and where the value is not known.
    """

    role: Literal["input", "output"]
    name: str
    dtype: str
    shape: Dims
    source: Source
    why: str
    statistics: Statistics | None = None
    picture: Picture | None = None

    @property
    def type_text(self) -> str:
        """Dtype and shape: "float32[2,3]", with the value's own shape where it is known."""
        known = self.statistics
        return f"{self.dtype}{shape_text(self.shape if known is None else known.shape)}"

    @property
    def value_text(self) -> str:
        """The value in a line."""
        found = self.statistics
        if found is None:
            return self.why
        if found.min is None:
            figures = f"{found.nan} NaN, {found.inf} infinite" if found.nan or found.inf else ""
        elif found.finite == 1 and not found.nan and not found.inf:
            figures = f"{found.min:.6g}"
        else:
            wrong = f", {found.nan} NaN, {found.inf} infinite" if found.nan or found.inf else ""
            figures = f"{found.min:.6g} to {found.max:.6g}, mean {found.mean:.6g}{wrong}"
        return "; ".join(filter(None, [figures, self.why]))


@frozen
class Explanation:
    """What an operation does, with the values of a step; made by `Session.explain`.

    Its text is short sentences, and a table of its inputs and outputs.

    Attributes:
        name: The operation's name.
        type: Its op type.
        sentences: What is told, by topic.
        tensors: Its inputs, then its outputs.
        became: What became of its first output in the latest plan, or in that of the step that is
            held (see `plan.TensorAt`); "" before a step, and where it has no output.
        device: Full name of its device; "" where it has none.
        seconds: What one run of it takes; None where nothing is known.
        is_measured: Whether that was measured, and not estimated from shapes.
        iteration: The iteration that the loop around it is in; None outside of loops that run.
        gradient_of: Name of the operation whose gradient it belongs to; "" for none.
        gradients: Names of the operations that were made for its gradient.
    """

    name: str
    type: str
    sentences: tuple[Sentence, ...]
    tensors: tuple[ExplainedTensor, ...]
    became: str = ""
    device: str = ""
    seconds: float | None = None
    is_measured: bool = False
    iteration: int | None = None
    gradient_of: str = ""
    gradients: tuple[str, ...] = ()

    def about(self, topic: Topic) -> str:
        """Returns the sentences about a topic; "" for none."""
        return " ".join(s.text for s in self.sentences if s.topic == topic)

    @property
    def inputs(self) -> tuple[ExplainedTensor, ...]:
        """What it takes."""
        return tuple([t for t in self.tensors if t.role == "input"])

    @property
    def outputs(self) -> tuple[ExplainedTensor, ...]:
        """What it makes."""
        return tuple([t for t in self.tensors if t.role == "output"])

    def text(self) -> str:
        """Returns all of it as lines."""
        rows = [(t.role, t.name, t.type_text, t.value_text) for t in self.tensors]
        wide = [max((len(r[i]) for r in rows), default=0) for i in range(3)]
        table = [
            "  ".join(["", *(c.ljust(w) for c, w in zip(r, wide, strict=False)), r[3]]).rstrip()
            for r in rows
        ]
        return "\n".join([*(s.text for s in self.sentences), *table])

    __repr__ = text

    def _repr_html_(self) -> str:
        told = "".join(f"<p>{escape(s.text)}</p>" for s in self.sentences)
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{escape(c)}</td>" for c in (t.role, t.name, t.type_text, t.value_text))
            + "</tr>"
            for t in self.tensors
        )
        head = "".join(f"<th>{name}</th>" for name in ("", "tensor", "type", "value"))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<div>{told}{table if rows else ''}</div>"


__all__ = ["ExplainedTensor", "Explanation", "Sentence", "Source", "Topic"]
