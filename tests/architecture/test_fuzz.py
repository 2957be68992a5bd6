"""`make fuzz` runs all programs of the tests that go on at random, each as often as one says."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_make_fuzz_runs_every_random_program_as_often_as_one_says():
    text = (ROOT / "Makefile").read_text()
    target = re.search(r"^fuzz:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    assert target is not None
    commands = target[1]
    random = {
        path.name
        for path in (ROOT / "tests" / "helpers").glob("*.py")
        if 'add_argument("count"' in path.read_text()
    }
    assert len(random) > 5
    counts = dict(re.findall(r"tests/helpers/(\w+\.py) \$\((\w+)\)", commands))
    assert set(counts) == random
    assert len(set(counts.values())) == len(counts)
    for variable in counts.values():
        assert re.search(rf"^{variable} \?= \d+$", text, re.MULTILINE)
