"""Networks of the gallery: small enough for two processor cores."""

import os

import torch
from torch import nn


class Encoder(nn.Module):
    """(N, C, Y, X) of any size to (N, 128): three convolutions and the mean over the image."""

    features = 128

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, 32, 5, 2, 2), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, self.features, 3, 2, 1), nn.BatchNorm2d(self.features), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.layers(pixels)


class Pretrained(nn.Module):
    """The encoder in the file of GALLERY_ENCODER, for pixels as stored: ``--model python:_models:Pretrained``.

    The file also has the range that pixels were scaled by, so that ``wellread embed --scale none`` scales them alike.
    """

    def __init__(self) -> None:
        super().__init__()
        saved = torch.load(os.environ["GALLERY_ENCODER"], weights_only=True)
        self.encoder = Encoder(len(saved["low"]))
        self.encoder.load_state_dict(saved["weights"])
        self.register_buffer("low", torch.tensor(saved["low"]).view(-1, 1, 1))
        self.register_buffer("high", torch.tensor(saved["high"]).view(-1, 1, 1))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.encoder(((pixels - self.low) / (self.high - self.low)).clamp(0, 1))


def block(inputs: int, outputs: int) -> nn.Sequential:
    """Two convolutions that keep the size."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    """A U-Net of three levels: (N, C, Y, X) of any size to (N, 1, Y, X)."""

    def __init__(self, channels: int, width: int = 12) -> None:
        super().__init__()
        self.down = nn.ModuleList([block(channels, width), block(width, 2 * width), block(2 * width, 4 * width)])
        self.up = nn.ModuleList([block(6 * width, 2 * width), block(3 * width, width)])
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        height, width = pixels.shape[-2:]
        # Each level halves the size: a border makes it divisible, and is cut off again.
        x = nn.functional.pad(pixels, (0, -width % 4, 0, -height % 4), mode="replicate")
        kept = []
        for level, layers in enumerate(self.down):
            x = layers(x if level == 0 else nn.functional.max_pool2d(x, 2))
            kept.append(x)
        for layers, beside in zip(self.up, kept[-2::-1], strict=True):
            larger = nn.functional.interpolate(x, scale_factor=2, mode="nearest")
            x = layers(torch.cat([larger, beside], 1))
        return self.last(x)[..., :height, :width]
