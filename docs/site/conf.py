"""Settings of Sphinx for the documentation site; `build_site.py` writes the sources and runs it."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

import flowscope

project = "flowscope"
author = copyright = "the flowscope authors"
version = release = flowscope.__version__
extensions = ["myst_parser"]
root_doc = "index"
nitpicky = True

# Headings have the anchors that they have where Markdown is shown otherwise.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# What is indented in old pages is Python; output is plain text.
highlight_language = "python"
pygments_style = "friendly"
pygments_dark_style = "monokai"

html_theme = "furo"
html_title = f"flowscope {version}"
html_static_path = ["_static"]
html_css_files = ["flowscope.css"]
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False
# Excerpts of what is found would be fetched from a server.
html_show_search_summary = False
html_use_index = True
html_domain_indices = False
html_theme_options = {"navigation_with_keys": False}
# Each page lists its names; all of them in the sidebar of every page would take a minute.
toc_object_entries = False
maximum_signature_line_length = 100

_NAME = re.compile(r"(?:fs|tf)((?:\.\w+)+)(?:\(.*\))?", re.S)


class NamesAreLinks(SphinxPostTransform):
    """Links code that is a public name to its entry in the API, and an error's to its page."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        """Puts a reference around each such piece of code."""
        objects = self.env.domains["py"].data["objects"]
        for literal in list(self.document.findall(nodes.literal)):
            found = _NAME.fullmatch(literal.astext())
            name = f"fs{found[1]}" if found else ""
            is_free = not isinstance(literal.parent, nodes.reference | nodes.title)
            page = f"errors/{literal.astext().removeprefix('fs.errors.')}"
            if page in self.env.found_docs and page != self.env.docname and is_free:
                self.link(literal, self.app.builder.get_relative_uri(self.env.docname, page))
            elif name in objects and is_free:
                entry = objects[name]
                uri = self.app.builder.get_relative_uri(self.env.docname, entry.docname)
                self.link(literal, f"{uri}#{entry.node_id}")

    @staticmethod
    def link(literal: nodes.literal, uri: str) -> None:
        """Puts a reference around a piece of code."""
        reference = nodes.reference("", "", internal=True, refuri=uri)
        literal.replace_self(reference)
        reference += literal


def setup(app: Sphinx) -> None:
    """Adds the transform."""
    app.add_post_transform(NamesAreLinks)
