"""Gradients where nothing comes from above, at points where a derivative is infinite or none.

The tables hold what TensorFlow 2.21 gives for cotangents of 0: "0", or "?" for NaN. Where it gives
0 so do we: a branch that `where` does not take must not make the whole gradient NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs

POINTS = [0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-30, 1e30]
# fmt: off
ONE = {
    "sqrt": "000000000", "rsqrt": "000000000", "reciprocal": "000000000", "log": "?00000?00",
    "log1p": "00?000?00", "exp": "0000?0?0?", "expm1": "0000?0?0?", "square": "0000???00",
    "abs": "000000?00", "sign": "000000000", "sin": "0000???00", "cos": "0000???00",
    "tan": "0000???00", "asin": "0??0???0?", "acos": "0??0???0?", "atan": "000000?00",
    "sinh": "0000???0?", "cosh": "0000???0?", "tanh": "000000?00", "asinh": "000000?00",
    "acosh": "????0???0", "atanh": "0??000?00", "sigmoid": "000000?00", "nn.softplus": "000000?00",
    "nn.relu": "000000000", "nn.relu6": "000000000", "nn.elu": "000000?00", "nn.selu": "000000000",
    "nn.leaky_relu": "000000000", "nn.softsign": "000000?00", "nn.swish": "0000???00",
    "log_sigmoid": "000000?00", "erf": "000000?00", "erfc": "000000?00", "lgamma": "?0?0???00",
    "math.erfinv": "0??0???0?", "math.ndtri": "???0???0?", "math.bessel_i0e": "000000?00",
    "math.bessel_i1e": "000000?00", "cumsum": "000000000", "math.reciprocal_no_nan": "000000??0",
    "norm": "0000???00", "reduce_logsumexp": "0000???00", "reduce_prod": "000000000",
    "reduce_max": "000000?00", "reduce_mean": "000000000", "math.reduce_std": "0000???00",
    "nn.crelu": "000000000",
}
FUNCTIONS: dict[str, tuple[Any, str]] = {
    "x ** 2": (lambda x: x ** 2.0, "0000???00"), "x ** 0.5": (lambda x: x ** 0.5, "?0?000?00"),
    "2 ** x": (lambda x: 2.0 ** x, "0000?0?0?"), "1 / x": (lambda x: 1.0 / x, "?00000??0"),
    "clip": (lambda x: fs.clip_by_value(x, -1.0, 1.0), "000000000"),
    "hard": (lambda x: fs.maximum(fs.minimum(x, 1.0), -1.0), "000000000"),
    "sqrt(x * x)": (lambda x: fs.sqrt(fs.square(x)), "0000???00"),
    "nextafter": (lambda x: fs.math.nextafter(x, x + 1.0), "000000000"),
    "l2_normalize": (lambda x: fs.nn.l2_normalize(x, 0), "0000???00"),
}
PAIRS = [0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]
#: For each x, each y: the gradients for x and for y.
TWO = {
    "realdiv": ["?? 00 00 00 00 ??"] * 3 + ["?? 0? 0? 0? 0? ??"] * 3,
    "div_no_nan": ["00 00 00 00 00 ??"] * 3 + ["00 0? 0? 0? 0? ??"] * 3,
    "math.multiply_no_nan": ["00 00 00 ?0 ?0 ?0"] * 6,
    "math.xlogy": ["00 00 00 00 00 00", *["?? 00 ?0 ?0 ?0 ??"] * 2, *["?? 0? ?? ?? ?? ??"] * 3],
    "math.xdivy": ["00 00 00 00 00 00", *["?? 00 00 00 00 ??"] * 2, *["?? 0? 0? 0? 0? ??"] * 3],
    "math.xlog1py": ["00 00 00 00 00 00", *["00 00 ?0 ?0 ?0 ??"] * 2, *["0? 0? ?? ?? ?? ??"] * 3],
    "pow": ["?0 00 ?? ?0 ?? ??", "00 00 00 ?0 ?0 ?0", "00 00 ?? ?? ?0 ??", "0? 0? 0? ?? ?? ??",
            "00 0? 00 ?? ?0 ??", "?0 0? ?? ?? ?? ??"],
    "atan2": ["?? 00 00 ?0 ?0 ??", *["00 00 00 ?0 ?0 ??"] * 2, *["0? 0? 0? ?? ?? ??"] * 2,
              "?? ?? ?? ?? ?? ??"],
    "floormod": ["0? 00 00 00 00 0?"] * 3 + ["0? 0? 0? 0? 0? 0?"] * 3,
    "maximum": ["00 00 00 00 00 00"] * 6, "minimum": ["00 00 00 00 00 00"] * 6,
    "squared_difference": ["00 00 00 ?? ?? ??"] * 3 + ["?? ?? ?? ?? ?? ??"] * 3,
    "multiply": ["00 00 00 ?0 ?0 ?0"] * 3 + ["0? 0? 0? ?? ?? ??"] * 3,
}
#: What takes its cotangent as it is, or leaves it out: 0 times an infinite one would be NaN.
CHOICES: dict[str, Any] = {
    "maximum": lambda x: fs.maximum(x, 1.0), "minimum": lambda x: fs.minimum(x, 1.0),
    "clip": lambda x: fs.clip_by_value(x, -1.0, 1.0), "top_k": lambda x: fs.nn.top_k(x, 2)[0],
    "segment_max": lambda x: fs.segment_max(x, [0, 0, 0, 1, 1, 1]),
    "unsorted_min": lambda x: fs.unsorted_segment_min(x, [0, 0, 0, 1, 1, 1], 2),
    "sort": lambda x: fs.sort(x)[:3], "where": lambda x: fs.where(x > 0.0, x, fs.ones_like(x)),
    "mask": lambda x: fs.boolean_mask(x, [True, False] * 3),
    "gather": lambda x: fs.gather(x, [0, 2]),
    "sign": fs.sign,
}
# fmt: on


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with fs.Graph().as_default():
        yield


def _function(name: str) -> Any:
    found: Any = fs
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _value(*fetches: Any) -> Any:
    with fs.Session() as session, np.errstate(all="ignore"):
        return session.run(list(fetches))


@pytest.mark.parametrize("name", [*ONE, *FUNCTIONS])
def test_no_cotangent_gives_no_nan_of_one_input(name: str) -> None:
    function, table = FUNCTIONS[name] if name in FUNCTIONS else (_function(name), ONE[name])
    xs = [fs.constant([p], fs.float32) for p in POINTS]
    ys = [function(x) for x in xs]
    found = _value(*[fs.gradients(y, x, fs.zeros_like(y))[0] for x, y in zip(xs, ys, strict=True)])
    wrong = [p for p, g, t in zip(POINTS, found, table, strict=True) if t == "0" and g[0] != 0]
    assert not wrong


@pytest.mark.parametrize("name", TWO)
def test_no_cotangent_gives_no_nan_of_two_inputs(name: str) -> None:
    a, b = (m.reshape(-1) for m in np.meshgrid(PAIRS, PAIRS, indexing="ij"))
    x, y = fs.constant(a, fs.float32), fs.constant(b, fs.float32)
    z = _function(name)(x, y)
    found = _value(*fs.gradients(z, [x, y], fs.zeros_like(z)))
    table = [pair for line in TWO[name] for pair in line.split()]
    for i in (0, 1):
        wrong = [(a[k], b[k]) for k, t in enumerate(table) if t[i] == "0" and found[i][k] != 0]
        assert not wrong, f"for input {i}"


@pytest.mark.parametrize("cotangent", [np.inf, np.nan])
@pytest.mark.parametrize("name", CHOICES)
def test_what_was_not_chosen_gets_none_of_an_infinite_cotangent(
    name: str, cotangent: float
) -> None:
    x = fs.constant([1.5, -2.0, 3.0, 0.5, -5.0, 6.0])
    y = CHOICES[name](x)
    above = [fs.fill(fs.shape(y), c) for c in (1.0, cotangent)]
    chosen, found = _value(*[fs.convert_to_tensor(fs.gradients(y, x, g)[0]) for g in above])
    np.testing.assert_array_equal(found[chosen == 0], 0)


def test_where_takes_no_nan_from_the_branch_that_is_not_taken() -> None:
    x = fs.constant([0.0, 4.0])
    want = {fs.sqrt: 0.25, fs.rsqrt: -0.0625, fs.reciprocal: -0.0625}
    for function, slope in want.items():
        y = fs.where(x > 0.0, function(x), fs.zeros_like(x))
        np.testing.assert_allclose(_value(fs.gradients(y, x)[0])[0], [0, slope])
