"""Elements of datasets as steps ask for them. Sessions enter by `resource_kinds`."""
