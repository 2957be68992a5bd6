"""Functions in a real JupyterLab: from a call to the body, and from the body to its calls."""

from __future__ import annotations

import re

from jupyter_driver import Lab
from playwright.sync_api import Locator, expect

LOAD = "%load_ext flowscope\nimport flowscope as fs"
BUILD = """
@fs.function
def layer(x, w):
    return fs.nn.relu(fs.matmul(x, w))

x = fs.placeholder(fs.float32, [None, 4], name="x")
w = fs.get_variable("w", [4, 4])
y = layer(layer(x, w), w)
gradient = fs.gradients(y, w)[0]
fs.show()
"""


def test_a_call_leads_to_the_body_and_the_body_to_its_calls(lab: Lab) -> None:
    notebook = lab.open(LOAD, BUILD)
    notebook.run(0)
    notebook.run(1)
    view = notebook.output(1)

    def item(label: str) -> Locator:
        return view.get_by_role("treeitem", name=re.compile(rf"^{label}\b"))

    inspector = view.get_by_test_id("fs-inspector")
    body, gradient = item("ƒ\\slayer, "), item("ƒ\\slayer_grad, ")
    expect(gradient).to_have_attribute("aria-expanded", "false")
    body.focus()
    body.press("ArrowLeft")  # whether it is open at first depends on the space that there is
    expect(body).to_have_attribute("aria-expanded", "false")

    item("layer_1, ƒ\\slayer").focus()
    item("layer_1, ƒ\\slayer").press("Enter")
    expect(inspector).to_contain_text("Calls")
    inspector.get_by_role("button", name="ƒ layer", exact=True).click()
    expect(body).to_have_attribute("aria-expanded", "true")
    expect(body).to_have_attribute("aria-selected", "true")
    expect(inspector).to_contain_text("Called by")

    inspector.get_by_role("button", name="layer_2", exact=True).click()
    expect(item("layer_2, ƒ\\slayer")).to_have_attribute("aria-selected", "true")
    view.get_by_test_id("fs-stage").press("Enter")
    expect(body).to_have_attribute("aria-selected", "true")
