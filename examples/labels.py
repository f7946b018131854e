"""(pixels, labels) from a column beside the images: classes, texts, several columns, values of your own."""

import numpy as np
import wellread
from _images import cells

dataset = wellread.Dataset(cells())
print(f"columns: {dataset.columns}")

# A column of numbers.
pixels, labels = next(iter(wellread.DataLoader(dataset, 8, labels="crowded", as_="torch")))
print(f"crowded: {labels.dtype} {labels.tolist()}")

# Texts have no type in torch or JAX; classes number them.
loader = wellread.DataLoader(dataset, 8, labels="well", classes=True, as_="torch")
pixels, labels = next(iter(loader))
print(f"wells: {labels.tolist()} of {loader.classes}")

# Several columns: a dictionary. With more parts, a batch is a dictionary too where that is wanted.
pixels, beside = next(iter(wellread.DataLoader(dataset, 4, columns=["well", "crowded"])))
print(f"several: {beside}")
batch = next(iter(wellread.DataLoader(dataset, 4, labels="crowded", columns=["well"], indices=True, as_dict=True)))
print(f"parts: {list(batch)}")

# Classes in equal shares, however often each occurs.
rare = dataset.column("well") == "A01"
loader = wellread.DataLoader(dataset, 16, order="balanced", by=rare.astype(int), labels=rare, num_workers=2)
shares = np.concatenate([labels for _, labels in loader])
print(f"images of A01: {rare.mean():.0%} of the set, {shares.mean():.0%} of a balanced epoch")
