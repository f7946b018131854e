"""wellread itself, as its users in Python call it: the only file here that imports `wellread`."""

import functools
import importlib
import time

import numpy as np

from ..clock import now

# Seconds without a byte read are the end of reading ahead; or twice what the first batch took, where that is longer.
AT_REST = 0.1


class Images:
    """Single images: `wellread.torch.Dataset` in PyTorch, `wellread.Dataset` elsewhere; scaled image by image."""

    knows_framework = True
    knows_layouts = True
    tracks: tuple[str, ...] = ("dataloader", "loop")

    def __init__(self, path, finish, framework, layout=None):
        import wellread

        self.finish, self.framework = finish, framework
        self.images = wellread.Dataset(path, layout=layout)
        self.dataset = self.images
        if framework == "pytorch":
            self.import_for(framework)
            self.dataset = wellread.torch.Dataset(self.images, transform=TorchFinish(finish), dtype="stored")

    @staticmethod
    def import_for(framework):
        """Import the part of the package that is for a framework."""
        if framework == "pytorch":
            importlib.import_module("wellread.torch")

    def __len__(self):
        return len(self.images)

    def native(self, i):
        image = self.images[i]
        return image if image.ndim == 5 else image[None, :, None]

    def __getitem__(self, i):
        return self.dataset[i] if self.framework == "pytorch" else self.finish(self.native(i))

    def take(self, rows):
        if self.framework == "pytorch":
            return self.dataset.__getitems__(rows)
        return [self[row] for row in rows]


class Loader(Images):
    """Batches: `wellread.DataLoader` with its own threads, which crops and scales too."""

    tracks = ("dataset", "dataloader", "loop", "conversion")

    def loader(self, size, seed, workers, drop_last):
        """A loader that shuffles by itself; `begin` says how."""
        import wellread

        return wellread.DataLoader(
            self.images,
            batch_size=size,
            shuffle=True,
            seed=seed,
            num_workers=workers,
            drop_last=drop_last,
            # All images are measured, whatever job the benchmark runs in.
            shard=False,
            as_="torch" if self.framework == "pytorch" else self.framework,
            crop=self.finish.crop,
            scale="unit" if self.finish.scale is None else self.finish.scale,
        )

    def read_ahead(self, loader):
        """Has a loader that is kept take what memory it may come to need; `read_ahead` of the Rust benchmark."""
        if not loader.num_workers:
            return
        begin = now()
        batches = iter(loader)
        held, before = next(batches), None
        at_rest = max(AT_REST, 2e-9 * (now() - begin))
        while before != (before := loader.traffic["used"]):
            time.sleep(at_rest)
        del held

    def begin(self, loader, epoch):
        """Begin an epoch; what tells the rows in the order in which it delivers them."""
        loader.set_epoch(epoch)
        # Formats without kept pages decode in every epoch: all do the same work.
        loader._built.forget_pages()
        return functools.cache(lambda: loader.rows(epoch))


class TorchFinish:
    """`Finish` in torch: the transform of a dataset."""

    def __init__(self, finish):
        self.finish = finish

    def __call__(self, image):
        if self.finish.crop:
            height, width = self.finish.crop
            y, x = (image.shape[-2] - height) // 2, (image.shape[-1] - width) // 2
            image = image[..., y : y + height, x : x + width]
        name = str(image.dtype).removeprefix("torch.")
        factor, offset = self.finish.factors(np.dtype(name))
        values = image.float()
        # A float image is the dataset's own memory.
        values = values * float(factor) if values is image else values.mul_(float(factor))
        return values + float(offset) if offset else values
