"""What is timed: one file per benchmark, each with `turn(worker, request)`.

A turn opens, warms up where the request says so, reads the clock around what a user would call, and answers with
raw nanoseconds. It computes no statistics: the program does that for every framework alike.
"""

import time

from .. import peers
from ..images import Finish

now = time.perf_counter_ns


def open_reader(request):
    """The request's reader, opened."""
    entry = peers.find(request["reader"], request["format"])
    crop = tuple(request["crop"]) if request["crop"] else None
    return entry.load()(request["path"], Finish(crop, request["scale"]))
