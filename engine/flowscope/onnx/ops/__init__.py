"""Converters, a module per family of operators. `table` enters by `import_module`."""
