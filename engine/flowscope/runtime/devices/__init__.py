"""Devices and their arrays. Sessions enter by `local_devices`, back ends by `device`."""
