"""Time, with the cost of looking at the clock taken off; in Rust it is `wellread_measure::clock`.

begin = now()
...
took = net(now() - begin)
"""

from statistics import median
from time import perf_counter_ns as now

# The median over batches ignores those that a scheduler interrupted.
BATCHES = 101
READS = 200


def calibrate():
    """Nanoseconds that an empty interval measures; takes some milliseconds."""
    costs = []
    for _ in range(BATCHES):
        spent = 0
        for _ in range(READS):
            begin = now()
            spent += now() - begin
        costs.append(spent / READS)
    return round(median(costs))


OVERHEAD_NS = calibrate()


def net(interval):
    """Nanoseconds of an interval, less the cost of the clock, at least zero."""
    return max(0, interval - OVERHEAD_NS)
