"""Kernels: functions of arrays alone, of no graph. Ops of several families enter by each module."""
