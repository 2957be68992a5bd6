"""Recurrent cells in NumPy, written down a second time for the tests."""

from __future__ import annotations

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def basic_rnn(x, h, kernel, bias):
    h = np.tanh(np.hstack([x, h]) @ kernel + bias)
    return h, h


def gru(x, h, gate_kernel, gate_bias, kernel, bias):
    r, u = np.split(sigmoid(np.hstack([x, h]) @ gate_kernel + gate_bias), 2, axis=1)
    candidate = np.tanh(np.hstack([x, r * h]) @ kernel + bias)
    h = u * h + (1 - u) * candidate
    return h, h


def lstm(x, state, kernel, bias, peepholes=None, projection=None, clip=None, proj_clip=None):
    c, h = state
    i, j, f, o = np.split(np.hstack([x, h]) @ kernel + bias, 4, axis=1)
    wf, wi, wo = (0, 0, 0) if peepholes is None else peepholes
    c = sigmoid(f + 1.0 + wf * c) * c + sigmoid(i + wi * c) * np.tanh(j)
    if clip is not None:
        c = np.clip(c, -clip, clip)
    h = sigmoid(o + wo * c) * np.tanh(c)
    if projection is not None:
        h = h @ projection
    if proj_clip is not None:
        h = np.clip(h, -proj_clip, proj_clip)
    return h, (c, h)


def run(step, x, state, lengths=None):
    """Runs `step(x_t, state)` along x [batch, time, depth], row by row.

    Returns outputs [batch, time, n] and the last state; rows end after `lengths` steps.
    """
    batch, time = x.shape[:2]
    lengths = [time] * batch if lengths is None else lengths
    is_tuple = isinstance(state, tuple)
    outputs, states = [], []
    for b in range(batch):
        at = tuple(s[b : b + 1] for s in state) if is_tuple else state[b : b + 1]
        row = []
        for t in range(time):
            out, new = step(x[b : b + 1, t], at)
            row.append(out if t < lengths[b] else np.zeros_like(out))
            at = new if t < lengths[b] else at
        outputs.append(np.concatenate(row))
        states.append(at)
    if not is_tuple:
        return np.stack(outputs), np.concatenate(states)
    return np.stack(outputs), tuple(np.concatenate(part) for part in zip(*states, strict=True))
