"""The legend of devices above the picture: its rows, and dragging onto them."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect


def stage(page: Page) -> Locator:
    return page.get_by_test_id("fs-stage")


def device(page: Page, name: str) -> Locator:
    """Returns a device's row in the legend."""
    return page.get_by_role("button", name=re.compile(rf"^{name}, "))


#: Gives where a text is drawn once it stays there: pictures move from one to the next.
AT_REST = """async text => {
    const place = () => window.texts.find(t => t[0] === text)?.slice(2, 4);
    const wait = () => new Promise(done => setTimeout(done, 100));
    for (let last = null, now = place(); ; last = now, now = place()) {
        if (now !== undefined && String(now) === String(last)) return now;
        await wait();
    }
}"""


def place_of(page: Page, text: str) -> tuple[float, float]:
    """Returns where a text is drawn, in the page's coordinates."""
    corner = stage(page).locator("canvas").first.bounding_box()
    assert corner is not None
    x, y = page.evaluate(AT_REST, text)
    return corner["x"] + x, corner["y"] + y


def drag(page: Page, text: str, to: Locator) -> None:
    """Drags what is called so to a device's row, as a hand does."""
    x, y = place_of(page, text)
    page.mouse.move(x + 8, y)
    page.mouse.down()
    page.mouse.move(x + 30, y + 20, steps=4)
    expect(page.locator(".fs-ghost")).to_be_visible()
    row = to.bounding_box()
    assert row is not None
    page.mouse.move(row["x"] + 30, row["y"] + 8, steps=6)
    page.mouse.up()
    expect(page.locator(".fs-ghost")).to_have_count(0)
