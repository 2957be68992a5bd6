# ruff: noqa: E501
# fmt: off
"""Rows of checks: what they hand on when all is well."""

from __future__ import annotations

from typing import Any

from row_tools import F, H, In, Table

import flowscope as fs

ROWS = Table()
row = ROWS.row


def after(check: Any) -> Any:
    """The first input, once a check of the inputs has run."""

    def call(x: Any, *others: Any) -> Any:
        with fs.control_dependencies([check(x, *others)]):
            return fs.identity(x)

    return call


def same(x: Any, *others: Any) -> Any:
    return x


_P = In(low=0.5, high=2)
row("check_numerics", lambda x: fs.check_numerics(x, "x"), same, In(), dtypes=H)
row("verify_finite", lambda x: fs.verify_tensor_all_finite(x, "x"), same, In(value=[3e38, 3e38], dtype="float32"), order=0)
row("ensure_shape", lambda x: fs.ensure_shape(x, [None, 3]), same, In(), dtypes=(*F, "int32", "bool"))
row("guarantee_const", fs.guarantee_const, same, In())
row("assert", after(lambda x: fs.Assert(fs.reduce_all(x < 9.0), [x, "text"])), same, In())
row("assert_many", after(lambda x: fs.Assert(x < 9.0, [])), same, In())
for _name, _y in (("less", 9.0), ("less_equal", 9.0), ("greater", -9.0), ("greater_equal", -9.0), ("none_equal", 9.0)):
    row(f"assert_{_name}", after(lambda x, n=_name, y=_y: getattr(fs, f"assert_{n}")(x, y)), same, In())
row("assert_equal", after(lambda x: fs.assert_equal(x, x + 0.0, message="m")), same, In())
row("assert_near", after(lambda x: fs.assert_near(x, x * 1.0)), same, In())
row("assert_positive", after(fs.assert_positive), same, _P)
row("assert_non_negative", after(fs.assert_non_negative), same, _P)
row("assert_negative", after(lambda x: fs.assert_negative(-x)), same, _P)
row("assert_non_positive", after(lambda x: fs.assert_non_positive(-x)), same, _P)
row("assert_rank", after(lambda x: fs.assert_rank(x, 2)), same, _P)
row("assert_rank_fed", after(fs.assert_rank), same, _P, In(value=2, dtype="int32"))
row("assert_rank_at_least", after(lambda x: fs.assert_rank_at_least(x, 1)), same, _P)
row("assert_rank_in", after(lambda x: fs.assert_rank_in(x, [0, 2])), same, _P)
row("assert_shapes", after(lambda x, y: fs.debugging.assert_shapes([(x, ("N", 3)), (y, ("...", "N", None))])), same, _P, In((4, 2, 5)))
row("with_dependencies", lambda x: fs.with_dependencies([fs.assert_positive(x)], x), same, _P)
