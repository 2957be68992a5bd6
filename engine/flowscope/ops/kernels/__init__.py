"""Kernels: functions of arrays alone, which ops of several families share. They know no graph."""
