"""Plans, values, errors and modules on their way. Clients and workers enter by `plans`."""
