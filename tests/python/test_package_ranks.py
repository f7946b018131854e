"""Several ranks: how a loader finds its own, what it delivers to each, and what contradicts itself.

Ranks are processes on the CPU (gloo). Each writes down the labels of its images, which are the rows of the set.

Long because the program that each launcher starts is written out here.
"""

import copy
import json
import os
import pickle
import re
import subprocess
import sys
import textwrap
import time

import pytest
import torch
import torch.distributed
import wellread as wr
import wellread.torch
from own_process import HANGS
from ports import free_port
from wellread import _ranks

ROWS = list(range(40))
# As srun sets them for the tasks of a step of four, and Slurm for a job of four tasks.
STEP = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4", "SLURM_PROCID": "1"}
JOB = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "LOCAL_RANK": "1"}


@pytest.fixture(autouse=True)
def said(monkeypatch):
    """Earlier output of this process does not count."""
    monkeypatch.setattr(_ranks, "_said", set())


@pytest.fixture
def told(monkeypatch):
    """Sets variables for this process."""
    return lambda variables: [monkeypatch.setenv(name, value) for name, value in variables.items()]


@pytest.fixture
def group(tmp_path):
    """Torch's process group, of this process alone; tells it any ranks."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    with pytest.MonkeyPatch.context() as patch:

        def tell(rank, world_size):
            patch.setattr(torch.distributed, "get_rank", lambda: rank)
            patch.setattr(torch.distributed, "get_world_size", lambda: world_size)

        yield tell
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("variables", "ranks"),
    [
        ({}, (0, 1)),
        ({"RANK": "2", "WORLD_SIZE": "3"}, (2, 3)),
        ({"RANK": "", "WORLD_SIZE": ""}, (0, 1)),
        ({"WORLD_SIZE": "1"}, (0, 1)),
        # Processes that Lightning starts.
        ({"WORLD_SIZE": "2", "LOCAL_RANK": "1"}, (0, 1)),
        (STEP, (1, 4)),
        # Without srun there is one process, however many tasks the job was given: in the shell of salloc, …
        (JOB, (0, 1)),
        # … in the batch script, …
        (JOB | {"SLURM_PROCID": "0"}, (0, 1)),
        (JOB | {"SLURM_PROCID": "0", "SLURM_STEP_ID": "4294967291"}, (0, 1)),
        # … in the step that is the shell of an allocation, …
        (JOB | {"SLURM_PROCID": "0", "SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1"}, (0, 1)),
        # … and in the terminal of srun --pty.
        (STEP | {"SLURM_PROCID": "0", "SLURM_PTY_PORT": "40000"}, (0, 1)),
        (STEP | {"SLURM_NTASKS": "8"}, (1, 4)),
        # Older Slurm tells the tasks of a step by this alone.
        ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "4", "SLURM_PROCID": "3"}, (3, 4)),
        # Handed on to where nothing else of the job is known, such as into a container.
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, (0, 4)),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "4"}, (3, 4)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, (0, 1)),
        ({"SLURM_NTASKS": "4"}, (0, 1)),
        # torchrun in each task of a step.
        (STEP | {"RANK": "5", "WORLD_SIZE": "8"} | TORCHRUN, (5, 8)),
        (STEP | {"RANK": "2", "WORLD_SIZE": "4"} | TORCHRUN, (2, 4)),
        # A job of its own in each.
        (STEP | {"RANK": "1", "WORLD_SIZE": "2"} | TORCHRUN, (1, 2)),
        # Another launcher in each task, which numbers ranks as it likes.
        (STEP | {"RANK": "6", "WORLD_SIZE": "8"}, (6, 8)),
        (STEP | {"RANK": "1", "WORLD_SIZE": "4"}, (1, 4)),
        (JOB | {"RANK": "1", "WORLD_SIZE": "2"}, (1, 2)),
    ],
)
def test_launchers_tell_the_ranks(variables, ranks):
    assert _ranks.of_environment(variables).ranks == ranks


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"RANK": "0"}, "RANK is 0, and WORLD_SIZE is not set"),
        ({"WORLD_SIZE": "4"}, "WORLD_SIZE is 4, and RANK is not set"),
        ({"RANK": "4", "WORLD_SIZE": "4"}, "RANK is 4, and WORLD_SIZE is 4"),
        ({"RANK": "one", "WORLD_SIZE": "4"}, "RANK is 'one', which is no whole number"),
        ({"RANK": "0", "WORLD_SIZE": "-4"}, "WORLD_SIZE is '-4', which is no whole number"),
        ({"RANK": "0", "WORLD_SIZE": "9" * 30}, "no whole number"),
        # Left from something else: all four tasks would read the same.
        (STEP | {"RANK": "0", "WORLD_SIZE": "4"}, "rank 0 of 4, and the step of Slurm says rank 1 of 4"),
        (STEP | {"RANK": "0", "WORLD_SIZE": "1"}, "rank 0 of 1, and the step of Slurm says rank 1 of 4"),
        (STEP | {"RANK": "1", "WORLD_SIZE": "6"}, "rank 1 of 6, and the step of Slurm says rank 1 of 4"),
        (
            {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "RANK": "0", "WORLD_SIZE": "2"},
            "rank 0 of 2, and the step of Slurm says rank 1 of 2",
        ),
        ({"SLURM_PROCID": "2", "SLURM_NTASKS": "2"}, "SLURM_NTASKS is 2, and SLURM_PROCID is 2"),
        (JOB | {"SLURM_PROCID": "3"}, "SLURM_PROCID is 3, and SLURM_STEP_NUM_TASKS is not set"),
        (STEP | {"SLURM_PROCID": ""}, "SLURM_STEP_NUM_TASKS is 4, and SLURM_PROCID is not set"),
        (STEP | {"SLURM_PROCID": "4"}, "SLURM_STEP_NUM_TASKS is 4, and SLURM_PROCID is 4"),
    ],
)
def test_launchers_that_contradict_themselves_are_errors(parquet, told, variables, text):
    told(variables)
    # Made, since torch.distributed may be started before it is used, and then counts.
    loader = wr.DataLoader(parquet, 4)
    for use in (len, iter):
        with pytest.raises(wr.ChoiceError, match=re.escape(text)) as error:
            use(loader)
        assert error.value.hint and "shard" in error.value.hint
    assert "10 batches of 4" in repr(loader)
    assert "1 batch of 40" in repr(wr.DataLoader(parquet, 40, shard=False))
    assert len(wr.DataLoader(parquet, 4, shard=False)) == 10
    # What is the same for all ranks is told.
    assert loader.num_workers > 0 and loader.image_shape == (2, 48, 56) and loader.state_dict()["position"] == 0


def test_what_launchers_tell_is_said_once(parquet, told, caplog):
    told({"RANK": "1", "WORLD_SIZE": "4"})
    loader = wr.DataLoader(parquet, 5, labels=ROWS)
    assert len(loader) == 2 and not caplog.messages
    for _ in range(2):
        assert [labels.tolist() for _, labels in loader] == [ROWS[5:10], ROWS[25:30]]
    list(wr.DataLoader(parquet, 5))
    assert caplog.messages == [
        "wellread: rank 1 of 4 by RANK and WORLD_SIZE: this process delivers its part of the images; shard=False "
        "delivers all"
    ]


def test_a_job_of_slurm_with_one_process_reads_everything(parquet, told, caplog):
    told(JOB | {"SLURM_PROCID": "0"})
    loader = wr.DataLoader(parquet, 4, labels=ROWS)
    assert sum((labels.tolist() for _, labels in loader), []) == ROWS and len(loader) == 10
    (line,) = caplog.messages
    assert "has 4 tasks" in line and "delivers all images" in line


def test_the_tasks_of_a_step_divide_the_images(parquet, told, caplog):
    seen = []
    for task in range(4):
        told(STEP | {"SLURM_PROCID": str(task)})
        loader = wr.DataLoader(parquet, 3, shuffle=True, seed=5, labels=ROWS)
        assert (loader.images, len(loader)) == (10, 4)
        seen += sum((labels.tolist() for _, labels in loader), [])
    assert sorted(seen) == ROWS
    assert len(caplog.messages) == 4 and "SLURM_STEP_NUM_TASKS" in caplog.messages[0]


def test_ranks_that_are_handed_on_alone_divide_the_images(parquet, told, caplog):
    """`SLURM_PROCID` and `SLURM_NTASKS`, without the job that they are of."""
    seen = []
    for task in range(2):
        told({"SLURM_PROCID": str(task), "SLURM_NTASKS": "2"})
        loader = wr.DataLoader(parquet, 4, shuffle=True, seed=5, labels=ROWS)
        assert (loader.images, len(loader)) == (20, 5)
        seen += sum((labels.tolist() for _, labels in loader), [])
    assert sorted(seen) == ROWS
    assert caplog.messages[1].startswith("wellread: rank 1 of 2 by SLURM_PROCID and SLURM_NTASKS: this process")


def test_ranks_may_come_and_go(parquet, told, tmp_path):
    """A loader that was made, and looked at, before the process group is the group's afterwards."""
    told({"WORLD_SIZE": "2", "LOCAL_RANK": "1"})
    loader = wr.DataLoader(parquet, 4, labels=ROWS)
    assert len(loader) == 10 and next(iter(loader))[1].tolist() == ROWS[:4]
    early = iter(loader)
    begun = next(early)[1].tolist()
    assert loader.epoch == 2
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.distributed, "get_rank", lambda: 1)
            patch.setattr(torch.distributed, "get_world_size", lambda: 2)
            assert (len(loader), loader.images, loader.epoch) == (5, 20, 2)
            assert loader.rows(0) == sum((ROWS[i : i + 4] for i in range(4, 40, 8)), [])
            assert sum((labels.tolist() for _, labels in loader), []) == loader.rows(2)
            assert loader.epoch == 3
            # What was begun before goes on as it was.
            assert sum((labels.tolist() for _, labels in early), begun) == ROWS
    finally:
        torch.distributed.destroy_process_group()
    assert (len(loader), loader.epoch) == (10, 3)
    assert sum((labels.tolist() for _, labels in loader), []) == ROWS and loader.epoch == 4


def test_what_is_given_must_be_what_is_running(parquet, group, told):
    told({"RANK": "0", "WORLD_SIZE": "2"})
    group(1, 4)
    assert wr.DataLoader(parquet, 5).images == 10, "two started by each of two"
    for given in ({"shard": (0, 2)}, {"shard": [1, 5]}, {"rank": 0, "world_size": 4}):
        with pytest.raises(wr.ChoiceError, match=r"torch\.distributed says rank 1 of 4"):
            wr.DataLoader(parquet, 5, **given)
    same = wr.DataLoader(parquet, 5, shard=(1, 4))
    assert same.images == 10
    for off in (False, None, (0, 1)):
        assert wr.DataLoader(parquet, 5, shard=off).images == 40

    class Half:
        """A group of some of the processes."""

        def rank(self):
            return 1

        def size(self):
            return 2

    part = wr.DataLoader(parquet, 5, shard=Half())
    assert part.images == 20 and part.rows(0)[:5] == ROWS[5:10]
    assert copy.deepcopy(part).images == pickle.loads(pickle.dumps(part)).images == 20
    # The whole group, as torch has it.
    assert wr.DataLoader(parquet, 5, shard=torch.distributed.group.WORLD).images == 40
    group(2, 3)
    with pytest.raises(wr.ChoiceError, match="shard is rank 1 of 4"):
        len(same)


@pytest.mark.parametrize("running", [(0, 1), (0, 2), (1, 3), (1, 5)])
def test_a_process_group_and_a_launcher_must_agree(parquet, group, told, running):
    told({"RANK": "1", "WORLD_SIZE": "2"})
    loader = wr.DataLoader(parquet, 4)
    group(*running)
    rank, ranks = running
    text = f"torch.distributed says rank {rank} of {ranks}, and RANK and WORLD_SIZE say rank 1 of 2"
    with pytest.raises(wr.ChoiceError, match=re.escape(text)) as error:
        iter(loader)
    assert "unset RANK and WORLD_SIZE" in error.value.hint
    # What is given counts, and one launched process says nothing; nor does half of what a launcher sets.
    assert wr.DataLoader(parquet, 4, shard=False).images == 40
    for harmless in ({"RANK": "0", "WORLD_SIZE": "1"}, {"RANK": "", "WORLD_SIZE": "7"}):
        told(harmless)
        assert wr.DataLoader(parquet, 4).images == 40 // ranks


def test_images_that_are_always_left_out_are_told_once(parquet, told, caplog):
    for choices in ({"shard": (1, 3)}, {"rank": 2, "world_size": 3}):
        list(wr.DataLoader(parquet, 4, **choices))
    line = (
        "wellread: each epoch leaves out 1 of 40 images, which do not divide among 3 ranks; "
        'uneven="pad" repeats some instead'
    )
    assert caplog.messages == [line]
    for choices in ({"uneven": "pad"}, {"shuffle": True}, {"rows": ROWS[:39]}):
        list(wr.DataLoader(parquet, 4, shard=(0, 3), **choices))
    assert caplog.messages == [line]


def test_a_data_module_without_a_trainer_finds_its_ranks(parquet, told):
    from wellread.lightning import WellreadDataModule

    told({"RANK": "1", "WORLD_SIZE": "2"})
    assert WellreadDataModule(parquet, 4, train=ROWS).train_dataloader().images == 20
    assert WellreadDataModule(parquet, 4, val=ROWS[:33], dtype="stored").val_dataloader().images == 16
    given = WellreadDataModule(parquet, 4, train=ROWS, train_choices={"rank": 2, "world_size": 4})
    assert given.train_dataloader().images == 10


def test_what_is_given_counts_before_what_launchers_say(parquet, told, caplog):
    told({"RANK": "0", "WORLD_SIZE": "4"})
    shares = [wr.DataLoader(parquet, 5, shard=(rank, 2)).rows(0) for rank in range(2)]
    assert sorted(sum(shares, [])) == ROWS
    assert wr.DataLoader(parquet, 5, rank=1, world_size=2).rows(0) == shares[1]
    list(wr.DataLoader(parquet, 5, shard=(1, 2)))
    assert not caplog.messages


@pytest.mark.parametrize(
    ("choices", "error", "text"),
    [
        ({"shard": "all"}, ValueError, "shard must be \"auto\", .* or False, not 'all'"),
        ({"shard": True}, ValueError, "not True"),
        ({"shard": 3}, TypeError, "shard must be"),
        ({"shard": (1, 2, 3)}, ValueError, "not 3 things"),
        ({"shard": (2, 2)}, ValueError, "rank must be from 0 to 1"),
        ({"shard": (0, 0)}, ValueError, "world_size must be"),
        ({"shard": (0, 2), "rank": 0, "world_size": 2}, ValueError, "give one of them"),
        ({"shard": False, "rank": 0, "world_size": 2}, ValueError, "give one of them"),
        ({"rank": 0}, ValueError, "together"),
    ],
)
def test_shares_that_make_no_sense(parquet, choices, error, text):
    with pytest.raises(error, match=text):
        wr.DataLoader(parquet, 4, **choices)


def test_a_sampler_that_divides_is_not_divided_again(parquet, told):
    from torch.utils.data import DistributedSampler

    told({"RANK": "1", "WORLD_SIZE": "2"})
    sampler = DistributedSampler(ROWS, 2, 1, shuffle=False)
    loader = wr.DataLoader(parquet, 4, sampler=sampler, labels=ROWS)
    for found in (loader, pickle.loads(pickle.dumps(loader))):
        assert sum((labels.tolist() for _, labels in found), []) == ROWS[1::2]
    with pytest.raises(ValueError, match="divides the rows among 2 ranks already"):
        wr.DataLoader(parquet, 4, sampler=sampler, shard=(1, 2))


def test_a_state_that_was_loaded_before_the_ranks_were_known(parquet, group):
    group(0, 1)
    loader = wr.DataLoader(parquet, 4, labels=ROWS)
    iterator = iter(loader)
    seen = sum((next(iterator)[1].tolist() for _ in range(2)), [])
    state = loader.state_dict()
    for rank in range(2):
        group(0, 1)
        resumed = wr.DataLoader(parquet, 4, labels=ROWS)
        resumed.load_state_dict(state)
        group(rank, 2)
        seen += sum((labels.tolist() for _, labels in resumed), [])
        assert resumed.epoch == 1 and len(resumed) == 5
    assert sorted(seen) == ROWS


def test_a_pickled_loader_has_the_ranks_of_where_it_is(parquet, group, tmp_path):
    """A process that this one starts is a worker of its rank; any other is none."""
    group(1, 4)
    loader = wr.DataLoader(parquet, 5)
    assert pickle.loads(pickle.dumps(loader)).images == 10
    (tmp_path / "loader.pickle").write_bytes(pickle.dumps(loader))
    script = f"import pickle, wellread; print(pickle.load(open({str(tmp_path / 'loader.pickle')!r}, 'rb')).images)"
    child = subprocess.check_output([sys.executable, "-c", script], text=True, timeout=HANGS)
    other = subprocess.check_output(
        ["sh", "-c", '"$0" -c "$1"; true', sys.executable, script], text=True, timeout=HANGS
    )
    assert (child, other) == ("10\n", "40\n")
    group(2, 3)
    assert pickle.loads((tmp_path / "loader.pickle").read_bytes()).images == 13


LIGHTNING = """
import json, logging, os, sys, warnings
import torch
import wellread as wr
import wellread.torch
from wellread.lightning import pl

path, folder = sys.argv[1:]
rows = list(range(40))
warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen, self.lengths = {}, {}

    def training_step(self, batch, _):
        for name, part in batch.items():
            if part is not None:
                self.seen.setdefault(name, {}).setdefault(self.current_epoch, []).extend(part[1].tolist())
        return self.weight * 1.0

    def on_train_epoch_start(self):
        self.lengths = {name: len(loader) for name, loader in loaders.items()}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def on_train_end(self):
        with open(os.path.join(folder, f"{self.global_rank}.json"), "w") as file:
            json.dump({"seen": self.seen, "lengths": self.lengths, "before": before}, file)


def stream(**choices):
    dataset = wellread.torch.IterableDataset(path, batch_size=4, labels=rows, **choices)
    return torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers)


# All of them before there is a process group.
loaders = {}
loaders["own"] = wr.DataLoader(path, 4, shuffle=True, as_="torch", labels=rows)
loaders["all"] = wr.DataLoader(path, 4, as_="torch", labels=rows, shard=False)
dataset = wellread.torch.Dataset(path, labels=rows)
loaders["map"] = torch.utils.data.DataLoader(dataset, 4, shuffle=True, collate_fn=wellread.torch.collate)
workers = 0
loaders["stream"] = stream(shuffle=True, seed=3)
workers = 2
loaders["workers"] = stream(shuffle=True, seed=4)
loaders["stream_all"] = stream(shard=None)
before = {name: len(loader) for name, loader in loaders.items()}
from lightning.pytorch.utilities import CombinedLoader

net = Net()
trainer = pl.Trainer(
    accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(net, CombinedLoader(loaders, "max_size"))
torch.distributed.destroy_process_group()
"""


def run(command, text, arguments, folder, **variables):
    """Runs a script, alone or by torchrun, and returns what its ranks have written and what it said."""
    script = folder / "script.py"
    script.write_text("import faulthandler, signal\nfaulthandler.register(signal.SIGUSR1)\n" + textwrap.dedent(text))
    process = subprocess.Popen(
        [*command, script, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1", **variables},
    )  # fmt: skip
    try:
        out, errors = process.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        # Each process of the script writes where it is, forked ones too. An agent of torchrun just ends.
        for name in ("USR1", "KILL"):
            subprocess.run(["pkill", f"-{name}", "-f", script])
            time.sleep(10)
        pytest.fail(f"a script of ranks hangs:\n{process.communicate(timeout=HANGS)[1]}")
    assert process.returncode == 0, out + errors
    found = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]
    return found, errors


PYTHON = [sys.executable]
TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


@pytest.mark.parametrize("command", [PYTHON, TWO], ids=["lightning", "torchrun"])
def test_lightning_trains_on_every_image_once(parquet, tmp_path, command):
    """Loaders that were made before `fit` divide the images among the ranks that it starts."""
    # Else Lightning looks for a port; torchrun's agent says its own.
    port = {"MASTER_PORT": str(free_port())} if command is PYTHON else {}
    ranks, _ = run(command, LIGHTNING, [parquet, tmp_path], tmp_path, **port)
    divided = ("own", "map", "stream", "workers")
    for rank in ranks:
        # torchrun tells its processes their ranks; Lightning begins with one process.
        own = 5 if command is TWO else 10
        assert rank["before"] == {"own": own, "all": 10, "map": 10, "stream": own, "workers": own, "stream_all": 10}
        assert rank["lengths"] == {**dict.fromkeys(divided, 5), "map": 10, "all": 10, "stream_all": 10}
        for name in ("all", "stream_all"):
            assert rank["seen"][name] == {"0": ROWS, "1": ROWS}
    for name in divided:
        orders = []
        for epoch in ("0", "1"):
            first, second = (rank["seen"][name][epoch] for rank in ranks)
            assert len(first) == len(second) == 20 and sorted(first + second) == ROWS, (name, epoch)
            orders.append(first)
        # Also of worker processes, which are made anew for each epoch.
        assert orders[0] != orders[1], name


TORCHRUN_SCRIPT = """
import json, os, sys
import torch
import wellread as wr
import wellread.torch

path, folder = sys.argv[1:]
rows = list(range(40))


def labels(loader):
    return sum((labels.tolist() for _, labels in loader), [])


def main():
    rank = int(os.environ["RANK"])
    loader = wr.DataLoader(path, 4, shuffle=True, seed=1, as_="torch", labels=rows)
    found = {"env": labels(loader), "length": len(loader)}
    # Without what the launcher has told, and before the group there are no ranks.
    told = {name: os.environ.pop(name) for name in ("RANK", "WORLD_SIZE")}
    found["alone"] = len(loader)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    found["group"] = labels(loader)
    # A worker process knows no process group where it is spawned: it takes the ranks of who has started it.
    dataset = wellread.torch.IterableDataset(path, batch_size=4, labels=rows)
    for method in ("fork", "spawn", "forkserver"):
        workers = torch.utils.data.DataLoader(
            dataset, batch_size=None, num_workers=2, multiprocessing_context=method, timeout=600
        )
        found[method] = labels(workers)
    sampler = torch.utils.data.DistributedSampler(rows, shuffle=False)
    mapped = wellread.torch.Dataset(path, labels=rows)
    found["map"] = labels(torch.utils.data.DataLoader(mapped, 4, sampler=sampler))
    torch.distributed.destroy_process_group()
    found["after"] = len(loader)
    with open(os.path.join(folder, f"{rank}.json"), "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
"""


def test_torchrun_divides_with_and_without_a_process_group(parquet, tmp_path):
    ranks, said = run(TWO, TORCHRUN_SCRIPT, [parquet, tmp_path], tmp_path)
    for rank in ranks:
        assert (rank["length"], rank["alone"], rank["after"]) == (5, 10, 10)
    for name in ("env", "group", "fork", "spawn", "forkserver", "map"):
        first, second = (rank[name] for rank in ranks)
        assert len(first) == len(second) == 20 and sorted(first + second) == ROWS, name
    assert ranks[0]["env"] != ranks[0]["group"] != sorted(ranks[0]["group"])
    lines = [line for line in said.splitlines() if line.startswith("wellread: ")]
    # Once by each process that reads; the workers' parents have found theirs by the group.
    assert sorted(line.split(" by ")[0] for line in lines) == [f"wellread: rank {rank} of 2" for rank in range(2)]


JAX_SCRIPT = """
import json, os, sys
import numpy as np
import jax
import wellread as wr
from jax._src import xla_bridge

path, folder, rank, address = sys.argv[1:]
rank, rows = int(rank), list(range(40))
loader = wr.DataLoader(path, 4, labels=rows)
assert len(loader) == 10
jax.distributed.initialize(address, 2, rank)
found = {"length": len(loader), "labels": sum((labels.tolist() for _, labels in loader), [])}
# JAX has not been made to look for devices.
found["backends"] = len(xla_bridge._backends)
sharding = jax.sharding.NamedSharding(jax.make_mesh((2,), ("x",)), jax.sharding.PartitionSpec("x"))
whole, labels = next(iter(wr.DataLoader(path, 4, as_="jax", device=sharding, labels=rows)))
found["shape"] = whole.shape
found["labels_shape"] = labels.shape
found["labels_here"] = np.asarray(labels.addressable_shards[0].data).tolist()
(part,) = whole.addressable_shards
found["first"] = float(np.asarray(part.data).sum())
with open(os.path.join(folder, f"{rank}.json"), "w") as file:
    json.dump(found, file)
jax.distributed.shutdown()
"""


def test_jax_tells_the_ranks_without_starting_a_backend(parquet, tmp_path):
    import numpy as np

    address = f"localhost:{free_port()}"
    (tmp_path / "script.py").write_text(JAX_SCRIPT)
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    both = [
        subprocess.Popen(
            [sys.executable, tmp_path / "script.py", parquet, tmp_path, str(rank), address], env=env,
            stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=HANGS)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert sorted(ranks[0]["labels"] + ranks[1]["labels"]) == ROWS
    images = wr.Dataset(parquet)[:8].astype(np.float32) / 65535
    for rank, found in enumerate(ranks):
        assert (found["length"], found["backends"], found["shape"]) == (5, 0, [8, 2, 48, 56])
        assert found["first"] == pytest.approx(images[4 * rank : 4 * rank + 4].sum(), rel=1e-4)
        # Labels are one array over the devices of all processes, as pixels are.
        assert (found["labels_shape"], found["labels_here"]) == ([8], ROWS[4 * rank : 4 * rank + 4])


def test_torch_and_jax_must_agree(parquet, group, monkeypatch):
    group(1, 2)
    loader = wr.DataLoader(parquet, 4)
    monkeypatch.setattr(_ranks, "_of_jax", lambda: _ranks.Found((1, 2), "jax.distributed"))
    assert len(loader) == 5
    monkeypatch.setattr(_ranks, "_of_jax", lambda: _ranks.Found((0, 4), "jax.distributed"))
    with pytest.raises(wr.ChoiceError, match=r"rank 1 of 2, and jax\.distributed says rank 0 of 4"):
        len(loader)


def test_jax_and_a_launcher_must_agree(parquet, told, monkeypatch):
    told({"RANK": "1", "WORLD_SIZE": "3"})
    monkeypatch.setattr(_ranks, "_of_jax", lambda: _ranks.Found((1, 3), "jax.distributed"))
    loader = wr.DataLoader(parquet, 4)
    assert loader.images == 13
    monkeypatch.setattr(_ranks, "_of_jax", lambda: _ranks.Found((0, 2), "jax.distributed"))
    text = "jax.distributed says rank 0 of 2, and RANK and WORLD_SIZE say rank 1 of 3"
    with pytest.raises(wr.ChoiceError, match=re.escape(text)):
        iter(loader)


def test_benchmarks_measure_every_image(wellread, parquet, tmp_path, monkeypatch):
    """They may run within a job of several ranks."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    out = tmp_path / "results"
    wellread(
        "bench", "dataloader", "--input", parquet, "--formats", "parquet", "--framework", "rust,pytorch",
        "--repeats", 1, "--batch-sizes", 8, "--workers", 0, "--time-budget", 600, "--out", out,
        "--python", sys.executable,
    )  # fmt: skip
    import csv

    with (out / "dataloader.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "ok"]
    counts = {(row["framework"], row["loader"]): int(row["num_samples"]) for row in rows}
    assert len(counts) > 2 and set(counts.values()) == {40}, counts
    # A loader for inference, too.
    from wellread.bench import create_dataloader

    assert len(create_dataloader(parquet, 8, (2, 32, 32), as_="numpy")) == 5
    assert len(create_dataloader(parquet, 5, (2, 32, 32), as_="numpy", shard="auto")) == 2
