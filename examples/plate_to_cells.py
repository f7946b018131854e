"""From a plate as the microscope wrote it to a falling loss: crops around nuclei train a small CNN in PyTorch.

    python plate_to_cells.py [IMAGES CELLS]

IMAGES is the plate's folder (Opera Phenix, ImageXpress, …) and CELLS its table of cells (Parquet, CSV, SQLite), with
a column Metadata_Treated of 0 and 1. Without them a plate is generated: half of its wells were given a compound.
"""

import sys

import torch
import wellread
from _images import plate
from torch import nn

torch.manual_seed(0)
images, table = sys.argv[1:] or plate()

sites = wellread.Dataset(images, cache="lru:2GiB")  # a site a row; its channels lie in a file each
print(f"{len(sites)} sites of {sites.image_shape(0)}, columns {sites.columns}")
cells = sites.cells(table, size=(64, 64))  # a crop around each nucleus
train, test = cells.split([0.75, 0.25], by="Metadata_Well")  # cells of a well are all in one part
print(f"{len(cells)} cells: {len(train)} to train, {len(test)} to test")

same = {"as_": "torch", "labels": "Metadata_Treated", "scale": (0, 16000), "num_workers": 2}
# Cells of 16 sites are mixed at a time, so that each file is read once an epoch.
loader = wellread.DataLoader(cells, 32, rows=train, order="block", block=16, seed=42, flip=True, **same)
channels = sites.image_shape(0)[0]
model = nn.Sequential(
    nn.Conv2d(channels, 16, 5, stride=2), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 2),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(6):
    losses = []
    for pixels, treated in loader:  # float32 (32, C, 64, 64), int64 (32,)
        loss = nn.functional.cross_entropy(model(pixels), treated)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}")

model.eval()
with torch.no_grad():
    right = sum(int((model(x).argmax(1) == y).sum()) for x, y in wellread.DataLoader(cells, 32, rows=test, **same))
print(f"wells that were not trained on: {right / len(test):.0%} of {len(test)} cells right")
