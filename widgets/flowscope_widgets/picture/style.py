"""Colours and fonts. A picture brings its own ground, so it can be read on any page."""

from __future__ import annotations

FONT = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', Arial, sans-serif"
)

#: Class -> SVG attribute -> (on light, on dark). The light ones are attributes of the elements too,
#: so that a page that strips styles still shows the light picture.
COLOURS: dict[str, dict[str, tuple[str, str]]] = {
    "ground": {"fill": ("#fafbfc", "#16191d")},
    "wall": {"fill": ("#eef1f5", "#20252b"), "stroke": ("#c3cad3", "#434c57")},
    "wall2": {"fill": ("#e3e8ee", "#2a3038"), "stroke": ("#c3cad3", "#4b5561")},
    "body": {"fill": ("#f4f0fb", "#2a2538"), "stroke": ("#8467b8", "#a78fd6")},
    "call": {"fill": ("#ffffff", "#2b3139"), "stroke": ("#8467b8", "#a78fd6")},
    "op": {"fill": ("#ffffff", "#2b3139"), "stroke": ("#8b96a4", "#7a8695")},
    "feed": {"fill": ("#eaf3fb", "#1f3547"), "stroke": ("#4a8cbf", "#6fb0e0")},
    "var": {"fill": ("#fdf3e0", "#40341d"), "stroke": ("#b98a2f", "#d8a84a")},
    "const": {"fill": ("#f4f4f2", "#2c2e30"), "stroke": ("#a3a7ad", "#757c85")},
    "scope": {"fill": ("#e7ecf2", "#2f3843"), "stroke": ("#7f8b9a", "#8694a4")},
    "strip": {"fill": ("#9aa6b4", "#6b7887")},
    "head": {"fill": ("#1b222b", "#eceff3"), "stroke": ("#eaeef3", "#252b31")},
    "count": {"fill": ("#566271", "#aab5c2"), "stroke": ("#eaeef3", "#252b31")},
    "name": {"fill": ("#1b222b", "#eceff3")},
    "type": {"fill": ("#566271", "#aab5c2")},
    "label": {"fill": ("#566271", "#a3aebb")},
    "edge": {"stroke": ("#76828f", "#8d99a6")},
    "tip": {"fill": ("#76828f", "#8d99a6")},
    "wait": {"stroke": ("#9a8fb0", "#a99cc4")},
    "return": {"stroke": ("#8467b8", "#a78fd6")},
    "returntip": {"fill": ("#8467b8", "#a78fd6")},
    "frame": {"fill": ("none", "none"), "stroke": ("#8467b8", "#a78fd6")},
    "waittip": {"fill": ("#9a8fb0", "#a99cc4")},
}

#: Told apart by colour-blind people too, on light and dark. Source: Okabe and Ito 2008.
_DEVICES = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8a8a8a",
)  # fmt: skip
DEVICES = len(_DEVICES)
COLOURS |= {f"device{k}": {"fill": (value, value)} for k, value in enumerate(_DEVICES)}


def colour(name: str) -> str:
    """Returns the class and the light colours of a kind of element, as SVG attributes."""
    light = " ".join(f'{key}="{pair[0]}"' for key, pair in COLOURS[name].items())
    return f'class="fs-{name}" {light}'


def sheet() -> str:
    """Returns the style sheet: the dark colours, for this picture alone."""
    rules = "".join(
        f".fs-picture .fs-{name}{{{';'.join(f'{k}:{pair[1]}' for k, pair in kinds.items())}}}"
        for name, kinds in COLOURS.items()
        if not name.startswith("device")
    )
    return f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"
