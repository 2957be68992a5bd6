"""TensorFlow's checkpoints, version 2. `CheckpointReader` and `SaveV2` enter by `bundle`.

sorted_table   the file .index: sorted keys and values in checked blocks
slice_keys     the keys under which parts of a tensor stand
bundle         arrays by name: .index and .data files, read and written
"""
