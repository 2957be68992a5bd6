"""What is said where a program asks for a name that is not there."""

import pytest

import flowscope as fs
from flowscope.absent import ELSEWHERE


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_a_part_of_tensorflow_that_is_elsewhere(name):
    with pytest.raises(AttributeError) as e:
        getattr(fs, name)
    assert str(e.value) == f"module 'flowscope' has no attribute '{name}': {ELSEWHERE[name]}"


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        (fs, "reduce_meen", "reduce_mean"),
        (fs, "Placeholder", "placeholder"),
        (fs.nn, "soft_max", "softmax"),
    ],
)
def test_a_name_that_is_nearly_right(module, name, meant):
    with pytest.raises(AttributeError, match=f"no attribute '{name}': did you mean '{meant}'"):
        getattr(module, name)


def test_a_name_that_is_like_no_other():
    with pytest.raises(AttributeError, match="module 'flowscope.nn' has no attribute 'quux'$"):
        fs.nn.quux  # noqa: B018
    assert not hasattr(fs, "_repr_html_")
