"""Clock reads around forward passes."""

import gc

from ..clock import net, now


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
            begin = now()
            for i in range(count):
                start = now()
                run()
                wait()
                samples[i] = now() - start
            wall = now() - begin
    finally:
        gc.enable()
    return [net(sample) for sample in samples], net(wall)
