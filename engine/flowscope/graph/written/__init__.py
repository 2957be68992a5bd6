"""Graphs as text and as JSON, and back.

In: a `Graph`. Out: a `GraphDef`, plain data that knows no graph; its text and its JSON; and from
each of them a graph again. What is read is parsed and checked, and never executed. Called by users
and by what saves models.

    definition  GraphDef, NodeDef: what all forms share
    export      graph -> GraphDef
    values      attributes as JSON          literals    attributes as text
    json_form   GraphDef <-> JSON           text_form   GraphDef -> text        text_reader  back
    check       a GraphDef is sound: names, references, op types, attributes, dtypes, shapes
    build       a sound GraphDef -> operations of a graph; import_graph_def
    meta        the same with collections and the objects in them (variables)
"""
