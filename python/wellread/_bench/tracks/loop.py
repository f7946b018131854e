"""Track 3: a model fed by a loader; where does a step's time go?

A step is: ask for a batch, have it (`wait`), run the model on it, and wait for the device. The first batch and the
model's first step, which compiles where the framework does, are given apart. Each turn opens the set anew. Where its
steps reach the end of the first epoch, the time of that epoch has opening in it and all its steps. None is told of a
turn that made the model.
"""

import numpy as np

from ..checks import Checker
from ..clock import net, now
from ..models import ModelError
from .dataloader import Batches


def check_model(framework, request):
    """Make the model and run each mode on zeros of the shape of a batch, so that mistakes show before measuring."""
    batch = framework.host(np.zeros(request["shape"], np.float32))
    modes = {}
    for mode in request["modes"]:
        model = framework.model(request["model"], request["shape"], request["seed"])
        if mode in model.modes:
            model.step(batch, mode)
            framework.wait()
        modes[mode] = None if mode in model.modes else model.why_not(mode)
    return {"modes": modes, "backend": model.backend}


class Endless:
    """Batches of epoch after epoch, each with a function that gives its rows: a step does not wait for those."""

    def __init__(self, batches, epoch):
        self.batches, self.epoch, self.left = batches, epoch, 0
        self.between_steps()
        self.given = self._given()

    def between_steps(self):
        """Work that is no part of a step: at an epoch's end the next is chosen, and the set forgets its pixels."""
        if self.left == 0:
            self.batches.shuffle(self.epoch)
            self.epoch, self.left = self.epoch + 1, len(self.batches)

    def _given(self):
        while True:
            k = -1
            for k, delivered in enumerate(self.batches):
                self.left -= 1
                yield delivered, self.batches.rows_later(k)
            if k < 0:
                raise ValueError("the loader delivers no batch: --batch-size is larger than the set")

    def __next__(self):
        return next(self.given)

    def close(self):
        """End the epoch."""
        self.given.close()


def turn(worker, request):
    """`steps` steps, fewer where `share_s` is over before; the model goes on from turn to turn."""
    framework, mode = worker.framework, request["mode"]
    opening = now()
    source = Batches(framework, request, drop_last=True)
    steps = Endless(source, request["first_epoch"])
    delivered, _ = next(steps)
    batch = framework.batch(delivered)
    framework.wait()
    first = now()
    model = worker.kept.get(request["key"])
    is_new = model is None
    if is_new:
        model = framework.model(request["model"], list(batch.shape), request["seed"])
    begin = now()
    loss = model.step(batch, mode)
    framework.wait()
    first_step = net(now() - begin)
    worker.kept[request["key"]] = model
    # Of the first epoch: its time, and the batches that are still to come.
    epoch, left = net(first - opening) + first_step, len(source) - 1
    del batch, delivered
    # Looking at pixels takes longer than a step of a light model, and the loader would read on meanwhile.
    checker = Checker(worker.channel, request["full"], request["steps"], request["first_epoch"])
    share, waits, whole, images = int(request["share_s"] * 1e9), [], [], 0
    start = now()
    for number in range(request["steps"]):
        steps.between_steps()
        asked = now()
        delivered, rows = next(steps)
        batch = framework.batch(delivered)
        have = now()
        loss = model.step(batch, mode)
        framework.wait()
        done = now()
        waits.append(net(have - asked))
        whole.append(net(done - asked))
        images += source.size
        if left > 0:
            epoch, left = epoch + whole[-1], left - 1
        if number in checker.chosen:
            checker.add(rows, framework.to_numpy(batch))
        if len(whole) >= request["least"] and done - start > share:
            break
    checker.close()
    steps.close()
    if loss is not None and not np.isfinite(loss):
        raise ModelError(f"the loss is {loss}: training diverged")
    return {
        "first_batch_ns": net(first - opening),
        "first_step_ns": first_step if is_new else None,
        "first_epoch": None if is_new or left > 0 else [epoch, len(source) * request["batch_size"]],
        "waits_ns": waits,
        "steps_ns": whole,
        "images": images,
        "traffic": source.traffic(),
        "link": source.link(),
        "loss": loss,
        "backend": model.backend,
    }
