"""A layered layout of our own, for where there is no Graphviz: scope by scope, from the inside.

In: what is to be seen (`View`). Out: positions (`Placement`). Each open scope is laid out by
itself; edges that leave or enter it go through ports in its lower and upper wall. Within a scope:
ranks by longest path, tightened; dummy vertices where an edge passes a rank; a few barycentre
sweeps for the order; x by isotonic regression, which keeps the order and lets nothing overlap.

Source: Sugiyama, Tagawa and Toda 1981 for the steps.
"""

from flowscope_widgets.picture.own.nested import lay_out
from flowscope_widgets.picture.own.ranks import back_edges

__all__ = ["back_edges", "lay_out"]
