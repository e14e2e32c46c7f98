"""The learning curves of a study."""

import numpy as np
from curves.learning import CHECKPOINTS, SIZE, _episode, curve, expected_return, world


def test_the_expected_return_is_what_episodes_have_on_average():
    on = world(3)
    policy = [1 if cell // SIZE < SIZE - 1 else 3 for cell in range(SIZE * SIZE)]
    rng = np.random.default_rng(0)
    tried = [_episode(on, policy, rng) for _ in range(4000)]
    error = np.std(tried) / np.sqrt(len(tried))
    assert abs(np.mean(tried) - expected_return(on, policy)) < 4 * error


def test_worlds_and_curves_repeat_and_learning_helps():
    assert world(5) == world(5)
    assert world(5) != world(6)
    steps, _, expected = zip(*curve("Q-learning", 3, 0), strict=True)
    assert list(steps) == CHECKPOINTS.tolist()
    assert expected[-1] > expected[0]
    again = list(zip(*curve("Q-learning", 3, 0), strict=True))[2]
    assert expected == again
