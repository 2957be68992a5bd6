"""Who is in a cluster, and what they have. Clients enter by `tasks` and `members`."""
