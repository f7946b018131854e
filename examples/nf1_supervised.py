"""NF1 Cell Painting: fifteen files are five sites of three channels, and the profiles say what to learn of each.

    python nf1_supervised.py [FOLDER]

FOLDER has images/ and profiles.parquet, as tests/data of cytomining/CytoDataFrame has them. Without it, images of the
same names are generated. A network learns how many cells CellProfiler found in a site. There are five sites, and
it learns these five alone, so that nothing is left to test with.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
import wellread
from _images import nf1
from torch import nn

torch.manual_seed(0)
folder = Path(sys.argv[1] if len(sys.argv) > 1 else nf1())

# B7_01_1_3_DAPI_001.tif: well B7, site 3, channel DAPI. No layout that is known has such names: a pattern says it.
sites = wellread.Dataset(folder / "images", pattern="{well}_01_*_{site}_{channel}_001.tif")
wells = list(sites.column("Metadata_Well"))
print(f"{len(sites)} sites of {sites.image_shape(0)}: {', '.join(wells)}")

names = ["Image_Metadata_Well_x", "Metadata_number_of_singlecells"]
profiles = {
    row[names[0]]: row[names[1]] for row in pq.read_table(folder / "profiles.parquet", columns=names).to_pylist()
}
counts = np.array([profiles[well] for well in wells], np.float32)
targets = (counts - counts.mean()) / counts.std()

loader = wellread.DataLoader(
    sites, len(sites), shuffle=True, seed=42, as_="torch", labels=targets, resize=(192, 192), flip=True, num_workers=2
)
model = nn.Sequential(
    nn.Conv2d(3, 16, 5, stride=2), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 1),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(60):
    for pixels, target in loader:  # float32 (5, 3, 192, 192) and (5,)
        loss = nn.functional.mse_loss(model(pixels).squeeze(1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 10 == 9 or epoch == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f}")
