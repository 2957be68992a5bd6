"""Collectives over devices and workers. Users enter by `fs.collectives`, plans by `Op.expand`."""
