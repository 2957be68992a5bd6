"""The members of a cluster and their devices. Clients enter by `tasks` and `members`."""
