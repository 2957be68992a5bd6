"""Graphs as text and as JSON, and back. `fs.Graph` enters by a registry, plans by `definition`.

In: a `Graph`. Out: a `GraphDef`, plain data that knows no graph; its text and its JSON; and from
each of them a graph again. What is read is parsed and checked, and never executed. Called by users
and by what saves models.

A file from anywhere gives a graph or an error of `flowscope.errors`, in time and memory that grow
with the file's size. The limits: 64 dimensions of a shape, sizes below 2**63, 65536 outputs of an
operation, calls 128 deep, 2**20 operations of a function with those that it calls, and as much
nesting of lists as Python's parser takes (a few hundred).

    definition  GraphDef, NodeDef: what all forms share
    export      graph -> GraphDef
    values      attributes as JSON          literals    attributes as text
    json_form   GraphDef <-> JSON           text_form   GraphDef -> text        text_reader  back
    formats     which form a file has; TensorFlow's are read by `flowscope.tensorflow`
    check       a GraphDef is sound: names, references, op types, attributes, dtypes, shapes
    build       a sound GraphDef -> operations of a graph; import_graph_def
    meta        the same with collections and the objects in them (variables)
"""
