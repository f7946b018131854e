"""Track 4: what does a tensor of an array in memory cost?

Two clocks per image: from asking the reader to its array, and from the array to the tensor. Whether memory was copied
is seen from the addresses of both, not assumed. The array begins where a batch of wellread's does: whether memory can
be taken as it is may hang on that.
"""

import numpy as np

from ..checks import Checker
from ..clock import net, now
from ..images import aligned
from . import open_reader


def turn(worker, request):
    """Convert `rows` by one path, until `share_s` is over and `least` are done."""
    framework = worker.framework
    ways = {way.path: way for way in framework.conversions()}
    way = ways[request["conversion"]]
    reader = open_reader(request, framework)
    checker = Checker(worker.channel, request["full"])
    share = int(request["share_s"] * 1e9)
    arrays, conversions, copied = [], [], []
    start = now()
    for row in request["rows"]:
        if len(arrays) >= request["least"] and now() - start > share:
            break
        asked = now()
        native = reader.native(row)
        cropped = reader.finish.cropped(native)
        if way.stored:
            array = aligned(cropped, native.dtype)
        else:
            array = reader.finish.scaled(aligned(cropped, np.float32), native.dtype)
        have = now()
        tensor = way.convert(array)
        done = now()
        arrays.append(net(have - asked))
        conversions.append(net(done - have))
        same = way.pointer is not None and way.pointer(tensor) == array.ctypes.data
        copied.append(0 if same else int(tensor.nbytes))
        values = framework.to_numpy(tensor)
        if way.stored:
            # The stored numbers as floats: scaled here, outside the clocks, to be compared.
            factor, offset = reader.finish.factors(array.dtype)
            values = values * factor + offset
        checker.add([row], values)
        # Memory is taken inside the clocks, and returned outside of them.
        del tensor, values, array, native, cropped
    checker.close()
    return {"arrays_ns": arrays, "conversions_ns": conversions, "copied_bytes": copied, "note": way.note}
