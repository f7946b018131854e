"""The worker's loop: a request comes, is carried out, and is answered by its raw samples or by why there are none."""

import platform
import traceback

from . import frameworks, memory, peers, transforms
from .clock import OVERHEAD_NS
from .errors import Unusable
from .inference import Inference
from .protocol import Channel
from .tracks import conversion, dataloader, dataset, loop


class Worker:
    """The state between requests: the framework, and the loaders that `--keep-open` keeps."""

    def __init__(self, channel):
        self.channel = channel
        self.framework = None
        self.kept = {}
        self.inference = Inference()

    def start(self, request):
        """Import the framework and say what it can measure."""
        try:
            self.framework = frameworks.create(request["framework"], request["threads"], request["seed"])
        except ImportError as error:
            entry = frameworks.FRAMEWORKS[request["framework"]]
            raise Unusable(f"{entry.package} cannot be imported ({error}); {entry.hint}") from error
        return {
            "python": platform.python_version(),
            "versions": self.framework.versions(),
            "backend": self.framework.backend(),
            "clock_overhead_ns": OVERHEAD_NS,
            "host_to_device_bytes_per_s": self.framework.host_to_device(),
            "readers": [peers.describe(entry, self.framework.name) for entry in peers.of_formats(request["formats"])],
            "conversions": [c.describe(self.framework) for c in self.framework.conversions()],
        }

    def check_model(self, request):
        """Make the model and run a step of each mode on an empty batch; says which modes it has."""
        return loop.check_model(self.framework, request)

    def check_transform(self, request):
        """Make a transform of the user's own and call it once; says what it gives."""
        return transforms.check(self.framework, request)

    def rest(self, _request):
        """Give back to the kernel what earlier turns freed, so that a peak is the next turn's own."""
        memory.give_back()
        return {}

    def infer(self, request):
        """A step of `wellread infer`."""
        return getattr(self.inference, request["what"])(request)

    def dataset(self, request):
        return dataset.turn(self, request)

    def dataloader(self, request):
        return dataloader.turn(self, request)

    def loop(self, request):
        return loop.turn(self, request)

    def conversion(self, request):
        return conversion.turn(self, request)


def main():
    """Answer requests until there are none."""
    channel = Channel()
    worker = Worker(channel)
    while True:
        request = channel.receive()
        try:
            answer = getattr(worker, request["do"])(request)
        # A user's module may raise anything when it is imported, and may call sys.exit().
        except BaseException as error:
            traceback.print_exc()
            channel.send({"event": "failed", "reason": why(error)})
        else:
            channel.send({"event": "done", **answer})


def why(error):
    """An error in one line."""
    text = " ".join(str(error).split())
    kind = type(error).__name__
    if isinstance(error, Unusable):
        return text
    return f"{kind}: {text}" if text else kind
