"""Plans: from (fetches, feeds) to code. The runtime's sessions enter by `plan`.

In: tensors to fetch, operations to run, tensors that will be fed. Out: an immutable `Plan`. Called
    by
the runtime's sessions, which cache plans. The passes run in this order and never import each other:
prune, order, place, regions; then `code` writes a function per region, or `interpret` runs it op
by op.
"""
