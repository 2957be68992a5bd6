"""The IPython extension: `%load_ext flowscope`, its magics, and the live channel."""
