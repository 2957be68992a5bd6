"""Records of decisions are found by their index, and the changelog stays short."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DECISIONS = ROOT / "docs/decisions"
RECORDS = sorted(DECISIONS.glob("[0-9]*.md"))
ROW = re.compile(r"^\| \[(\d+)\]\((\S+)\) \| (.+) \| (.+) \|$", re.M)

#: Lines that a release has in the changelog, at most.
LINES = 20


@pytest.fixture(scope="module")
def rows() -> list[tuple[str, ...]]:
    return ROW.findall((DECISIONS / "README.md").read_text("utf-8"))


def test_each_record_stands_in_one_room_of_the_index_under_its_title(rows):
    listed = sorted((name, f"# {number}. {title}") for number, name, title, _ in rows)
    assert listed == [(path.name, path.read_text("utf-8").splitlines()[0]) for path in RECORDS]


def test_numbers_of_records_are_used_once():
    numbers = [path.name.split("-")[0] for path in RECORDS]
    assert len(set(numbers)) == len(numbers)


def test_a_status_says_that_a_record_stands_or_what_replaced_it(rows):
    for number, _, _, status in rows:
        assert re.match(r"stands|superseded by \[\d+\]", status), (number, status)
        for other, target in re.findall(r"\[(\d+)\]\((\S+?)\)", status):
            assert target.startswith(f"{other}-") and (DECISIONS / target).exists(), status


def test_the_changelog_tells_each_release_in_few_lines():
    page = (ROOT / "CHANGELOG.md").read_text("utf-8")
    releases = re.split(r"^## ", page, flags=re.M)[1:]
    assert releases
    for release in releases:
        title, *lines = [line for line in release.splitlines() if line]
        assert len(lines) <= LINES, f"{title}: {len(lines)} lines"
