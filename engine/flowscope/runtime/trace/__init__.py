"""What is measured of a step while it runs. Steps enter by `step_trace`, users by `tracers`."""
