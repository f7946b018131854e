"""Transforms of torchvision, of MONAI and of your own, as `transform=`: any callable for an image."""

import monai.transforms
import torch
import wellread
import wellread.torch
from _images import cells
from torchvision.transforms import v2

path = cells(64)


def log_light(image: torch.Tensor) -> torch.Tensor:
    """Your own: (C, Y, X) in, any shape out that is the same for all images."""
    return torch.log1p(image * 100)


transforms = {
    "torchvision": v2.Compose([v2.RandomCrop(48), v2.RandomHorizontalFlip(), v2.Normalize([0.1, 0.1], [0.2, 0.2])]),
    "MONAI": monai.transforms.Compose([monai.transforms.RandSpatialCrop((48, 48), random_size=False),
                                       monai.transforms.RandGaussianNoise(prob=1.0, std=0.01)]),
    "own": log_light,
}  # fmt: skip
for name, transform in transforms.items():
    # Runs in the thread that iterates, after decoding and scaling.
    loader = wellread.DataLoader(path, 16, num_workers=2, as_="torch", transform=transform)
    shapes = {tuple(batch.shape) for batch in loader}
    print(f"{name}: {shapes}")
    # The same callable in torch's own DataLoader, where worker processes run it.
    item = wellread.torch.Dataset(path, transform=transform)[0]
    assert tuple(item.shape) == next(iter(shapes))[1:]

# What wellread has built in needs no Python at all: the threads do it.
built_in = wellread.DataLoader(
    path, 16, num_workers=2, as_="torch", random_crop=48, flip=True, gaussian_noise=0.01, normalize=(0.1, 0.2)
)
print(f"built in: {tuple(next(iter(built_in)).shape)}")

# A transform of whole batches, on whatever device they are.
whole = wellread.DataLoader(path, 16, as_="torch", batch_transform=lambda batch: batch.mean(1, keepdim=True))
print(f"by the batch: {tuple(next(iter(whole)).shape)}")
