"""Moves of one partition of a step: what it waits for goes on, though it is held."""

import pytest
from split_moves import MODES, MOVES, moved, random_moves

AT_END = (None, ())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize("move", MOVES)
def test_a_move_is_made_again_and_again_from_the_same_partition(mode, devices, move):
    places, value = moved(mode, ["step_iteration", move, move, move], devices)
    _, plain = moved(mode, [], devices)
    assert value.tobytes() == plain.tobytes()
    if move == "step_run":
        assert [p[:2] for p in places[2:]] == [AT_END]
    elif len(places) < 5:
        assert places[-1][:2] == AT_END, "where moves go past the end, the step is held there"


@pytest.mark.parametrize("slice_", range(4))
def test_random_moves_end_where_a_step_is_held(slice_):
    assert [random_moves(seed) for seed in range(slice_ * 10, slice_ * 10 + 10)] == [""] * 10
