"""A small network that marks the pixels of bright discs."""

import torch
from lightning.pytorch import LightningModule
from torch import nn


class Net(LightningModule):
    """Three convolutions, trained by cross entropy; logs the Dice of validation."""

    def __init__(self, width: int = 8, lr: float = 0.01):
        super().__init__()
        self.lr = lr
        self.layers = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, 1, 1),
        )  # fmt: skip

    def forward(self, images):
        return self.layers(images)

    def training_step(self, batch, _):
        loss = nn.functional.binary_cross_entropy_with_logits(self(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        logits, masks = self(batch[0]), batch[1]
        found = logits > 0
        self.log("val_loss", nn.functional.binary_cross_entropy_with_logits(logits, masks))
        self.log("val_dice", 2 * (found * masks).sum() / (found.sum() + masks.sum()).clamp(min=1))

    def predict_step(self, batch, _):
        return self(batch[0]).sigmoid()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.lr)
