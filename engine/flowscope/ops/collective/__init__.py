"""Collectives: `functions` is the door, for users `fs.collectives` and `fs.contrib.nccl`; plans
make the pieces of a collective by `hubs.Collective.expand`."""
