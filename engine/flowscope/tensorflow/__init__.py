"""TensorFlow's files become graphs of ours. `fs.GraphDef` enters by a registry, by `reading`.

In: bytes or text of a `GraphDef`, as TensorFlow 1 and 2 write it. Out: our `fs.GraphDef`, in which
operations have TensorFlow's names. Nothing in a file runs: op types are looked up in a table, and
what a file says is checked as every graph that is imported.

    values       TensorProto, AttrValue -> arrays, dtypes, shapes, numbers
    signatures   TensorFlow's op types: names of inputs and outputs (`signatures.txt`)
    op_table     op type -> function that adds our operations
    calls        PartitionedCall, If, While, Case -> our functions, branches and loops
    tensor_lists TensorList* -> our arrays
    saver_ops    what restores variables; what saves them is left out of models
    importer     nodes in an order in which they can be made -> operations
    reading      the door: bytes or text -> GraphDef; the graphs of a SavedModel
    checkpoints  arrays by name in .index and .data files
"""
