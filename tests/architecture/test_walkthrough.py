"""The pages tell the truth: their code runs and gives what they show."""

import pathlib
import re

import flowscope as fs

ROOT = pathlib.Path(__file__).parents[2]


def blocks(name, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text("utf-8"), re.S)


def test_the_walk_through_the_stages():
    build, code = blocks("ARCHITECTURE.md", "python")
    (program,) = blocks("ARCHITECTURE.md", "text")
    names = {"fs": fs}
    with fs.Graph().as_default(), fs.Session() as sess:
        exec(build, names)
        plan = sess.plan(names["y"], [names["x"]])
        shown = plan.text().replace(" on /job:localhost/replica:0/task:0/device:CPU:0", "")
    assert shown + "\n" == program
    assert plan.text("code") == code


def test_the_readmes_example(capsys):
    (example,) = blocks("README.md", "python")
    expected = re.search(r"# (\[\[.*)", example).group(1)
    with fs.Graph().as_default():
        exec(example, {})
    assert capsys.readouterr().out.strip() == expected


def test_the_readmes_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text("utf-8")):
        assert (ROOT / target).exists(), f"README.md links to {target}"


def test_the_table_of_passes_is_that_of_the_pipeline():
    from flowscope.plan.pipeline import PASSES

    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    table = page[page.index("| pass | what it does | why it is right |") :]
    rows = [line for line in table[: table.index("\n\n")].splitlines() if line.endswith(" |")]
    shown = [tuple(re.findall(r" ([^|]*) \|", line)) for line in rows]
    for one in PASSES:
        where = "" if len(one.modes) == 3 else f"; in {' and '.join(one.modes)} mode"
        assert (f"`{one.name}`", one.does + where, one.because) in shown
    names = [name.strip("`") for name, *_ in shown]
    first = names.index("order")
    assert names[first : first + len(PASSES)] == [one.name for one in PASSES]
