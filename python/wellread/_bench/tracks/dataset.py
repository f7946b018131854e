"""Track 1: one image at a time, as `Dataset.__getitem__`; a sample's time is from asking to having its tensor.

With `normalize`, the tensor is then centred and scaled as torchvision's `Normalize(mean=[0.5], std=[0.5])` does it.
"""

from ..checks import Checker
from ..clock import net, now
from . import open_reader


def turn(worker, request):
    """Take `rows` one by one, until `share_s` is over and `least` are taken."""
    framework = worker.framework
    begin = now()
    reader = open_reader(request, framework)
    opened = now()
    checker, normalize = Checker(worker.channel, request["full"]), request["transform"] == "normalize"
    share, samples = int(request["share_s"] * 1e9), []
    start = now()
    for row in request["rows"]:
        if len(samples) >= request["least"] and now() - start > share:
            break
        asked = now()
        image = framework.image(reader, row)
        if normalize:
            image = (image - 0.5) / 0.5
        framework.wait()
        samples.append(net(now() - asked))
        checker.add([row], framework.to_numpy(image))
    checker.close()
    return {"open_ns": net(opened - begin), "samples_ns": samples}
