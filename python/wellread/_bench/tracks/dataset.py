"""Track 1: one image at a time, as `Dataset.__getitem__`; a sample's time is from asking to having its tensor.

With `normalize`, the tensor is then centred and scaled as torchvision's `Normalize(mean=[0.5], std=[0.5])` does it.
A transform of the user's own is called with the plain tensor, which goes back to be compared before, outside the
clocks.
"""

from ..checks import Checker
from ..clock import net, now
from ..transforms import UserTransform
from . import open_reader


def turn(worker, request):
    """Take `rows` one by one, until `share_s` is over and `least` are taken."""
    framework, transform = worker.framework, request["transform"]
    user = UserTransform(transform, framework) if transform.startswith("python:") else None
    begin = now()
    reader = open_reader(request, framework)
    opened = now()
    checker = Checker(worker.channel, request["full"])
    share, samples = int(request["share_s"] * 1e9), []
    start = now()
    for row in request["rows"]:
        if len(samples) >= request["least"] and now() - start > share:
            break
        asked = now()
        image = framework.image(reader, row)
        if transform == "normalize":
            image = (image - 0.5) / 0.5
        framework.wait(image)
        took = net(now() - asked)
        checker.add([row], framework.to_numpy(image))
        if user:
            place, shape = f"row {row}", tuple(image.shape)
            asked = now()
            found = user.apply(place, image)
            framework.wait(found)
            took += net(now() - asked)
            user.check(place, shape, found)
        samples.append(took)
    checker.close()
    return {"open_ns": net(opened - begin), "samples_ns": samples, "note": user and user.note()}
