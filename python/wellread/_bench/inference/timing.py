"""Clock reads around forward passes."""

import gc
from time import perf_counter_ns


def passes(session, count):
    """Run `count` passes; nanoseconds of each, and from the first's beginning to the last's end.

    The device is idle at every clock read. As in Python's own `timeit`, the garbage collector rests meanwhile.
    """
    run, wait = session.run, session.wait
    samples = [0] * count
    gc.collect()
    gc.disable()
    try:
        with session.guard():
            wait()
            begin = perf_counter_ns()
            for i in range(count):
                start = perf_counter_ns()
                run()
                wait()
                samples[i] = perf_counter_ns() - start
            wall = perf_counter_ns() - begin
    finally:
        gc.enable()
    return samples, wall
