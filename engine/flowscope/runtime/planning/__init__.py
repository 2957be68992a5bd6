"""From fetches and feeds to a call that is kept. Sessions enter by `planner`."""
