"""The names that the package shows. `import flowscope` enters by `public_names` and `absent`.

Out: where each public name is found, and what is said of names that are not there. `exports` writes
`public_names`, `part_names` and the stubs. The namespaces themselves (`fs.nn`, `fs.math`) lie in
the package's root, for there Python and type checkers look for them.
"""
