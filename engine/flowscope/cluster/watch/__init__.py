"""How the processes of a cluster are. Clients enter by `watching`, views by `status`."""
