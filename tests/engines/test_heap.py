"""Heaps in a flat sequence: what comes out is the smallest, whoever has left from the middle."""

from __future__ import annotations

from random import Random

from lstmsim.engines.fast.heap import pop, push, remove

TASKS = 40


def test_the_first_is_the_smallest_of_those_that_are_left() -> None:
    drawn = Random(12)
    where, count = 3 * TASKS, 0
    state = [0] * (where + TASKS)
    inside: dict[int, tuple[int, int, int]] = {}
    for _ in range(3000):
        task = drawn.randrange(TASKS)
        if inside and drawn.random() < 0.2:
            del inside[state[2]]
            pop(state, 0, count, where)
            count -= 1
        elif task in inside:
            del inside[task]
            remove(state, 0, count, where, task)
            count -= 1
        else:
            inside[task] = drawn.randrange(30), drawn.randrange(3), task
            push(state, 0, count, where, *inside[task])
            count += 1
        assert all(state[state[where + each] + 2] == each for each in inside)
        assert not inside or tuple(state[:3]) == min(inside.values())
