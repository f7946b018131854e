"""A program built around torch.utils.data.DataLoader, unchanged but for its Dataset."""

import torch
import wellread.torch
from _images import cells


def main():
    dataset = wellread.torch.Dataset(cells(), labels="crowded")
    image, label = dataset[0]
    print(f"one image: {tuple(image.shape)} {image.dtype}, label {label}")

    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=16,
        shuffle=True,
        num_workers=2,  # processes, by any start method, even though this one has read already
        collate_fn=wellread.torch.collate,  # takes a batch that was read in one request as it is
    )
    images = 0
    for pixels, labels in loader:
        assert pixels.shape == (len(labels), 2, 64, 64)
        images += len(pixels)
    print(f"{images} images in {len(loader)} batches")


# Workers that are spawned import this file.
if __name__ == "__main__":
    main()
