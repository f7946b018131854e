"""Images of bright discs on noise, and their masks."""

import torch
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader, TensorDataset


class Discs(LightningDataModule):
    """The same images for the same seed; the last quarter is for validation and prediction."""

    def __init__(self, batch_size: int = 8, images: int = 64, size: int = 64, workers: int = 0, seed: int = 0):
        super().__init__()
        self.batch_size, self.images, self.size, self.workers, self.seed = batch_size, images, size, workers, seed

    def setup(self, stage):
        random = torch.Generator().manual_seed(self.seed)
        centre = torch.rand(self.images, 2, 1, 1, generator=random) * self.size
        at = torch.arange(self.size).float()
        far = (at.view(1, -1, 1) - centre[:, 0]) ** 2 + (at.view(1, 1, -1) - centre[:, 1]) ** 2
        masks = (far < (self.size / 5) ** 2).float().unsqueeze(1)
        images = masks + 0.5 * torch.randn(masks.shape, generator=random)
        held_out = self.images // 4
        self.training = TensorDataset(images[held_out:], masks[held_out:])
        self.held_out = TensorDataset(images[:held_out], masks[:held_out])

    def train_dataloader(self):
        return DataLoader(self.training, batch_size=self.batch_size, shuffle=True, num_workers=self.workers)

    def val_dataloader(self):
        return DataLoader(self.held_out, batch_size=self.batch_size, num_workers=self.workers)

    predict_dataloader = val_dataloader
