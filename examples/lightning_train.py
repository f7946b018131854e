"""Lightning: a DataModule that splits, shards and resumes by itself, and a callback that says where the time goes."""

import json
import logging
import warnings

import lightning.pytorch as pl
import torch
from _images import cells, folder
from torch import nn
from wellread.lightning import PhaseTimer, WellreadDataModule

logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
# Lightning advises more workers of torch's own loader, which these loaders are not.
warnings.filterwarnings("ignore", ".*does not have many workers.*")


class Classifier(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(2, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 2)
        )

    def training_step(self, batch, index):
        pixels, labels = batch
        return nn.functional.cross_entropy(self.layers(pixels), labels)

    def validation_step(self, batch, index):
        pixels, labels = batch
        self.log("accuracy", (self.layers(pixels).argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


data = WellreadDataModule(
    cells(),
    batch_size=16,
    split=(0.7, 0.3, 0),  # by a hash of each image's name: the same whatever is added later
    labels="crowded",
    num_workers=2,
    scale=(0, 4000),
    train_choices={"flip": True, "turns": "quarter"},
)
out = folder() / "phases.json"
timer = PhaseTimer(out)
with timer.phase("model_initialization"):
    model = Classifier()
trainer = pl.Trainer(
    accelerator="cpu", max_epochs=5, callbacks=[timer], logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip
trainer.fit(model, datamodule=data)

metrics = json.loads(out.read_text())["metrics"]
for name in ("model_initialization", "data_setup", "full_training"):
    print(f"{name}: {metrics[name]['elapsed_seconds']:.3f} s")
for name, timed in metrics["batch_breakdown"].items():
    print(f"{name}: {timed['elapsed_seconds'] * 1000:.2f} ms")
print(f"waiting for data: {metrics['steady_state']['data_wait_fraction']:.1%} of a step")
print(f"validation accuracy: {metrics['final_metrics']['accuracy']:.0%}")
