"""The views as widgets, for any notebook front end."""
