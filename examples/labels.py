"""(pixels, labels) from a column beside the images: classes, texts, several columns, values of your own."""

import numpy as np
import wellread
from _images import cells

dataset = wellread.Dataset(cells())
print(f"columns: {dataset.columns}")

# A column of numbers.
pixels, labels = next(iter(wellread.DataLoader(dataset, 8, labels="crowded", as_="torch")))
print(f"crowded: {labels.dtype} {labels.tolist()}")

# Texts have no type in torch or JAX; number them once.
wells, numbers = np.unique(dataset.column("well").astype(str), return_inverse=True)
pixels, labels = next(iter(wellread.DataLoader(dataset, 8, labels=numbers, as_="torch")))
print(f"wells: {labels.tolist()} of {len(wells)}")

# Several columns: a dictionary.
pixels, beside = next(iter(wellread.DataLoader(dataset, 4, columns=["well", "crowded"])))
print(f"several: {beside}")

# Classes in equal shares, however often each occurs.
rare = dataset.column("well") == "A01"
loader = wellread.DataLoader(dataset, 16, order="balanced", by=rare.astype(int), labels=rare, num_workers=2)
shares = np.concatenate([labels for _, labels in loader])
print(f"images of A01: {rare.mean():.0%} of the set, {shares.mean():.0%} of a balanced epoch")
