"""A small CNN in PyTorch, fed by wellread.DataLoader: threads decode and augment, batches are tensors at once."""

import torch
import wellread
from _images import cells
from torch import nn

torch.manual_seed(0)
path = cells()
dataset = wellread.Dataset(path)
loader = wellread.DataLoader(
    dataset,
    batch_size=16,
    shuffle=True,
    seed=42,
    num_workers=2,  # threads, not processes
    as_="torch",
    labels="crowded",  # a column: batches are (pixels, labels)
    scale=(0, 4000),  # the range that the camera used, to [0, 1]
    flip=True,
)

model = nn.Sequential(
    nn.Conv2d(2, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 2),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(8):  # each epoch in a new order, by itself
    total = correct = 0
    for pixels, labels in loader:  # float32 (16, 2, 64, 64), int64 (16,)
        scores = model(pixels)
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += len(labels)
        correct += int((scores.argmax(1) == labels).sum())
    print(f"epoch {epoch}: loss {loss.item():.3f}, {correct / total:.0%} right")
