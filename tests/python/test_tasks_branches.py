"""Two Python branches through the whole program: each branch's own modules run, and the slower one is named."""

import json
import subprocess
import sys

MODEL = """
import time

import torch
from lightning.pytorch import LightningModule

WIDTH = {width}


class Net(LightningModule):
    def __init__(self):
        super().__init__()
        layers = torch.nn.Linear(8, WIDTH), torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, 1)
        self.layers = torch.nn.Sequential(*layers)

    def training_step(self, batch, _):
        time.sleep({pause})
        return self.layers(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 1e-6)
"""
DATA = """
import torch
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader, TensorDataset


class Data(LightningDataModule):
    def __init__(self, batch_size=16):
        super().__init__()
        self.batch_size = batch_size

    def train_dataloader(self):
        return DataLoader(TensorDataset(torch.randn(192, 8)), batch_size=self.batch_size)
"""
TABLE = """branch,experiment,trainer,max_epochs,batch_size,overrides
main,"net.model:Net,net.data:Data",cpu,2,16,trainer.enable_checkpointing=false
wide,"net.model:Net,net.data:Data",cpu,2,16,trainer.enable_checkpointing=false
"""
WIDTHS = {"main": 8, "wide": 24}
# How much slower the other's step is, seconds: so much that no load of the machine turns it round. Work instead would
# take as long as the machine pleases.
PAUSES = {"main": 0, "wide": 0.2}


def parameters(width):
    return 9 * width + width * (width + 1) + width + 1


def test_each_branch_is_timed_with_its_own_model(wellread, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    repository = tmp_path / "repository"
    (repository / "net").mkdir(parents=True)

    def git(*args):
        named = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(["git", "-C", str(repository), *named, *args], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    (repository / "net" / "__init__.py").write_text("")
    (repository / "net" / "data.py").write_text(DATA)
    commits = {}
    for branch, width in WIDTHS.items():
        if branch != "main":
            git("checkout", "--quiet", "-b", branch)
        (repository / "net" / "model.py").write_text(MODEL.format(width=width, pause=PAUSES[branch]))
        git("add", "--all")
        git("commit", "--quiet", "--message", branch)
        commits[branch] = git("rev-parse", "HEAD")
    # What lies in the user's tree is of neither branch, and is not measured.
    (repository / "net" / "model.py").write_text("raise RuntimeError('the working tree')\n")
    table, output = tmp_path / "tasks.csv", tmp_path / "results.json"
    table.write_text(TABLE)
    document = wellread(
        "tasks", "train", "--config", table, "--output", output, "--repo", repository, "--adapter", "lightning",
        "--python", sys.executable, "--repeats", 1, "--compare",
    )  # fmt: skip

    entries = {entry["branch"]: entry for entry in json.loads(output.read_text())}
    assert list(entries) == ["main", "wide"]
    for branch, entry in entries.items():
        assert entry["success"], entry["error"]
        assert entry["git_info"]["commit_hash"] == commits[branch]
        info = entry["metrics"]["dataset_info"]
        assert (info["parameters"], info["num_batches"]) == (parameters(WIDTHS[branch]), 12), branch
        assert entry["metrics"]["epoch_breakdown"]["first_epoch"]["elapsed_seconds"] > 0
        assert sys.executable in json.dumps(entry["environment"]["python"])
    (comparison,) = document["comparisons"]
    assert (comparison["baseline"], comparison["candidate"]) == ("main", "wide")
    steps = next(phase for phase in comparison["phases"] if phase["phase"] == "batch_step")
    # One run of each: a ratio within these runs, and no verdict.
    assert (steps["verdict"], steps["ratio"]["low"], steps["p_value"]) == ("too_few_data", None, None), comparison
    assert steps["ratio"]["estimate"] > 1.1, comparison
    assert steps["reason"].startswith("within these runs only: one run of the baseline and one run of this"), steps
    assert comparison["sentence"].startswith("Within these runs only: "), comparison
    assert comparison["detail"].endswith("A verdict needs 3 runs of each: --repeats 3 or more."), comparison
    assert git("status", "--porcelain") == "M net/model.py"
    assert git("rev-parse", "--abbrev-ref", "HEAD") == "wide"
