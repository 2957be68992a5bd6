"""Recordings as pages of HTML: in one file, and nothing of what was recorded can run."""

import base64
import hashlib
import html
import re

import pytest
from packed_snapshots import unpacked

import flowscope as fs
from flowscope_widgets import html_page

pytestmark = pytest.mark.usefixtures("graph")

TITLE = "</title><script>alert(1)</script> & more"


@pytest.fixture
def profiled():
    x = fs.placeholder(fs.float32, [2], name="x")
    y = fs.reduce_sum(fs.tanh(x), name="y")  # </script><script>alert(1)</script>
    with fs.Session() as sess, fs.profile(sess) as found:
        for _ in range(2):
            sess.run(y, {x: [1.0, 2.0]})
    return found


@pytest.fixture
def page(profiled, tmp_path):
    if not (html_page._STATIC / "page.js").is_file():
        pytest.skip("needs the front end: make front-end")
    fs.save_html(profiled, tmp_path / "step.html", TITLE)
    return (tmp_path / "step.html").read_text("utf-8")


def test_a_page_holds_all_of_the_recording(page, profiled):
    (text,) = re.findall(r'id="flowscope-recording">([^<]*)</script>', page)
    told, numbers = unpacked(text)
    kinds = [m["kind"] for m in told["messages"]]
    assert kinds == ["snapshot", "spans", "spans", "history", "values"]
    assert sum(map(sum, told["sizes"])) == len(numbers)
    steps = [m["step"]["number"] for m in told["messages"][1:3]]
    assert steps == [s.number for s in profiled.recording.steps]


def test_what_was_recorded_is_text_in_it(page):
    assert html.escape(TITLE) in page
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 3
    (digest,) = re.findall(r"script-src 'sha256-([^']+)'", page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() == digest
    assert not re.findall(r'(?:src|href)="', page)


def test_a_title_says_what_and_when(profiled, tmp_path):
    if not (html_page._STATIC / "page.js").is_file():
        pytest.skip("needs the front end: make front-end")
    fs.save_html(profiled.recording, tmp_path / "step.html")
    text = (tmp_path / "step.html").read_text("utf-8")
    assert re.search(r"<h1>2 recorded steps, \d{4}-\d\d-\d\d \d\d:\d\d</h1>", text)


def test_what_is_no_recording_is_refused(tmp_path):
    with pytest.raises(fs.errors.DTypeError, match="expected a graph or a recording"):
        fs.save_html("run.recording", tmp_path / "step.html")
    assert not (tmp_path / "step.html").exists()


def test_without_its_front_end_it_says_so(profiled, tmp_path, monkeypatch):
    monkeypatch.setattr(html_page, "_STATIC", tmp_path)
    with pytest.raises(fs.errors.FailedPreconditionError, match="without its front end"):
        fs.save_html(profiled, tmp_path / "step.html")
