"""Training on several machines: each node has a part of the set, and a job goes on with other nodes.

Machines are processes of this one: two agents of torchrun with two ranks each, over gloo. Where root can make network
namespaces, a test has them on hosts of other names, which share no disk. Rows are those that ranks say they had.
"""

import importlib.util
import json
import pickle
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import hosts
import pytest
import wellread as wr
from ports import free_port
from several_ranks import run_all, torchrun
from wellread import _nodes, _ranks

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "distributed"
ROWS = list(range(40))
# As torchrun sets them for the second of four ranks on the first of two nodes.
TORCHRUN = {
    "RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0",
    "GROUP_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none",
}  # fmt: skip
# As srun does, for the fourth.
SRUN = {
    "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3", "SLURM_NNODES": "2", "SLURM_NODEID": "1",
}  # fmt: skip
UNKNOWN = _nodes.Named(None, None)


@pytest.fixture(autouse=True)
def said(monkeypatch):
    """Earlier output of this process does not count."""
    monkeypatch.setattr(_ranks, "_said", set())


def test_two_nodes_of_two_ranks_read_their_own_parts(parquet, tmp_path):
    script = (EXAMPLES / "train_torchrun.py", parquet, "--batch-size", 4)
    ranks = torchrun(tmp_path, 2, 2, *script, "--epochs", 3, "--reshard-every", 2)
    for epoch in ("0", "1", "2"):
        seen = [rank[epoch] for rank in ranks]
        assert [len(rows) for rows in seen] == [10] * 4
        assert sorted(sum(seen, [])) == ROWS
        nodes = [sorted(seen[0] + seen[1]), sorted(seen[2] + seen[3])]
        # Neighbouring rows, until nodes get other parts.
        assert (nodes == [ROWS[:20], ROWS[20:]]) == (epoch != "2"), nodes
    assert ranks[0]["0"] != ranks[0]["1"], "an order of its own in each epoch"


def test_hosts_of_other_names_keep_their_own_parts_on_their_own_disks(wellread, tmp_path):
    with hosts.made(tmp_path) as (gateway, both):
        words = [
            "--images",
            40,
            "--size",
            "256x256",
            "--channels",
            2,
            "--formats",
            "parquet",
            "--compression",
            "none",
        ]
        [written] = wellread("generate", tmp_path / "set", *words)["written"]
        size = Path(written["path"]).stat().st_size
        with hosts.served(written["path"], gateway) as (address, asked):
            script = (EXAMPLES / "train_torchrun.py", address, "--batch-size", 5, "--epochs", 2)
            ranks = torchrun(tmp_path, 2, 2, *script, on=(gateway, both))
        for epoch in ("0", "1"):
            seen = [rank[epoch] for rank in ranks]
            assert [sorted(seen[0] + seen[1]), sorted(seen[2] + seen[3])] == [ROWS[:20], ROWS[20:]]
        names = [(host.folder / "name").read_text().strip() for host in both]
        assert names == ["host-0", "host-1"] and socket.gethostname() not in names
        assert asked == {host.address for host in both}
        # Half of the set is on each disk, and a little of what lies beside it.
        cached = [host.cached() / size for host in both]
        assert all(0.45 < part < 0.75 for part in cached), cached


@pytest.mark.parametrize("shard", ["local", "auto"])
def test_a_job_goes_on_with_fewer_ranks(parquet, tmp_path, shard):
    checkpoint = tmp_path / "run.pt"
    script = (EXAMPLES / "train_torchrun.py", parquet, "--batch-size", 4, "--checkpoint", checkpoint)
    script = (*script, "--epochs", 1, "--shard", shard)
    first = torchrun(tmp_path, 2, 2, *script, "--stop-after", 1)
    assert [len(rank["0"]) for rank in first] == [4] * 4
    rest = torchrun(tmp_path, 1, 2, *script)
    assert [len(rank["0"]) for rank in rest] == [12] * 2
    assert sorted(sum((rank["0"] for rank in first + rest), [])) == ROWS


def test_lightning_s_ranks_are_on_its_trainer_s_nodes(parquet, tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    script = [EXAMPLES / "train_lightning.py", parquet, "--devices", 2, "--reshard-every", 1]
    command = [sys.executable, *script, "--written-rows", log]
    (said,) = run_all([command], tmp_path)
    assert re.search(r"validation loss: \d", said), said
    ranks = [json.loads((log / f"{rank}.json").read_text()) for rank in range(2)]
    train = sorted(ranks[0]["train"])
    for epoch in ("0", "1"):
        seen = [rank["seen"][epoch] for rank in ranks]
        assert len(seen[0]) == len(seen[1]) == len(train) // 2
        both = seen[0] + seen[1]
        assert len(set(both)) == len(both) and set(both) <= set(train)


def test_lightning_on_two_nodes(parquet, tmp_path):
    options = ("--nodes", 2, "--devices", 1, "--epochs", 2)
    ranks = torchrun(tmp_path, 2, 1, EXAMPLES / "train_lightning.py", parquet, *options)
    train = ranks[0]["train"]
    for epoch in ("0", "1"):
        seen = [set(rank["seen"][epoch]) for rank in ranks]
        # One may be left out.
        half = len(train) // 2
        assert [len(rows) for rows in seen] == [half, half]
        assert seen[0] | seen[1] <= set(train)
        # The same neighbouring rows in each epoch: a cache that the first one fills serves the second.
        assert max(seen[0]) < min(seen[1])


def test_processes_of_jax_are_nodes(parquet, tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    command = [sys.executable, EXAMPLES / "train_jax.py", parquet, "--coordinator", f"localhost:{free_port()}"]
    said = run_all([[*command, "--processes", 2, "--process", i, "--written-rows", log] for i in range(2)], tmp_path)
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", said[0])]
    assert len(losses) == 2, said
    seen = [json.loads((log / f"{rank}.json").read_text()) for rank in range(2)]
    for epoch in ("0", "1"):
        assert sorted(seen[0][epoch]) == ROWS[:20] and sorted(seen[1][epoch]) == ROWS[20:]


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_ray_tells_ranks_and_nodes(parquet, tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    command = [sys.executable, EXAMPLES / "train_ray.py", parquet, "--workers", 2, "--written-rows", log]
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        (said,) = run_all([command], tmp_path, RAY_TMPDIR=short)
    assert re.search(r"loss \d", said), said
    seen = [json.loads((log / f"{rank}.json").read_text()) for rank in range(2)]
    assert all(sorted(seen[0][epoch] + seen[1][epoch]) == ROWS for epoch in ("0", "1"))


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_ranks_of_ray_get_addresses_as_they_are_and_whole_paths(tmp_path):
    ask = "import runpy, sys; print(*map(runpy.run_path(sys.argv[1])['everywhere'], sys.argv[2:]), sep='\\n')"
    paths = ["s3://bucket/plate.parquet", "plate.parquet"]
    (said,) = run_all([[sys.executable, "-c", ask, EXAMPLES / "train_ray.py", *paths]], tmp_path)
    assert said.splitlines()[-2:] == [paths[0], str(tmp_path.resolve() / paths[1])]


# Beside its package, the options that each needs.
SCRIPTS = {
    "train_torchrun.py": ("torch", []),
    "train_lightning.py": ("lightning", []),
    "train_ray.py": ("ray", []),
    "train_jax.py": ("jax", ["--coordinator", "localhost:1", "--processes", "1", "--process", "0"]),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_images_of_one_channel_are_refused_before_ranks_meet(wellread, tmp_path, script):
    package, options = SCRIPTS[script]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    wellread("generate", tmp_path / "set", "--images", 4, "--size", "16x16", "--channels", 1, "--formats", "parquet")
    [path] = (tmp_path / "set").glob("*.parquet")
    command = [sys.executable, str(EXAMPLES / script), str(path), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.returncode == 2 and "must be (C, Y, X) with two channels or more" in done.stderr, done.stderr


def test_the_model_learns_the_second_of_five_channels(wellread, tmp_path):
    words = ["--images", 8, "--size", "24x24", "--channels", 5, "--formats", "parquet"]
    [written] = wellread("generate", tmp_path / "set", *words)["written"]
    alone = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "localhost"}
    (said,) = run_all(
        [[sys.executable, EXAMPLES / "train_torchrun.py", written["path"], "--epochs", 1]], tmp_path,
        MASTER_PORT=str(free_port()), **alone,
    )  # fmt: skip
    # As torch warns where the model's one channel is spread over several.
    assert re.search(r"loss \d", said) and "target size" not in said, said


@pytest.mark.parametrize(
    ("variables", "named", "ranks", "nodes"),
    [
        ({}, UNKNOWN, (0, 1), 1),
        ({}, _nodes.Named(2, None), (3, 4), 2),
        ({}, _nodes.Named(2, 1), (3, 4), 2),
        (TORCHRUN, UNKNOWN, (1, 4), 2),
        (TORCHRUN, _nodes.Named(2, 0), (1, 4), 2),
        # Of what runs on one rank, variables may tell of others.
        (TORCHRUN, UNKNOWN, (0, 1), 1),
        (SRUN, UNKNOWN, (3, 4), 2),
        (SRUN | {"SLURM_STEP_NUM_NODES": "4", "SLURM_NODEID": "3"}, UNKNOWN, (3, 4), 4),
        # torchrun numbers nodes as they come.
        (SRUN | TORCHRUN, UNKNOWN, (1, 4), 2),
        # Ray Train, and Lightning beside a trainer.
        ({"LOCAL_WORLD_SIZE": "4", "NODE_RANK": "1"}, UNKNOWN, (5, 8), 2),
    ],
)
def test_launchers_tell_the_nodes(variables, named, ranks, nodes):
    assert _nodes.now(named, ranks, variables) == nodes


@pytest.mark.parametrize(
    ("variables", "named", "ranks", "text"),
    [
        ({}, UNKNOWN, (0, 2), "needs to know on how many nodes the 2 ranks are"),
        # The job's nodes are not those of a process that srun has not started.
        ({"SLURM_NNODES": "2"}, UNKNOWN, (0, 2), "needs to know"),
        ({}, _nodes.Named(3, None), (0, 4), "4 ranks on 3 nodes (nodes=) are not equally many"),
        ({}, _nodes.Named(2, None), (0, 1), "1 rank on 2 nodes"),
        ({}, _nodes.Named(2, 0), (3, 4), "rank 3 of 4 is on node 0 of 2 by nodes= and node=, and would be on node 1"),
        (TORCHRUN, _nodes.Named(4, None), (1, 4), "nodes= says 4 nodes, and LOCAL_WORLD_SIZE says 2"),
        (TORCHRUN | {"GROUP_RANK": "1"}, UNKNOWN, (1, 4), "is on node 1 of 2 by GROUP_RANK"),
        (TORCHRUN | {"LOCAL_WORLD_SIZE": "3"}, UNKNOWN, (1, 4), "LOCAL_WORLD_SIZE is 3, and 4 ranks"),
        (TORCHRUN | {"LOCAL_WORLD_SIZE": "0"}, UNKNOWN, (1, 4), "LOCAL_WORLD_SIZE is 0"),
        (TORCHRUN | {"LOCAL_WORLD_SIZE": "two"}, UNKNOWN, (1, 4), "no whole number"),
        # As srun --distribution=cyclic numbers tasks.
        (SRUN | {"SLURM_PROCID": "1"}, UNKNOWN, (1, 4), "srun --distribution=block"),
        (SRUN | {"LOCAL_WORLD_SIZE": "4"}, UNKNOWN, (3, 4), "LOCAL_WORLD_SIZE says 1 node, and SLURM_NNODES says 2"),
    ],
)
def test_nodes_that_contradict_themselves_are_errors(variables, named, ranks, text):
    with pytest.raises(wr.ChoiceError, match=re.escape(text)) as error:
        _nodes.now(named, ranks, variables)
    assert error.value.hint


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ({"nodes": 2}, 'nodes belongs to shard="local"'),
        ({"reshard_every": 1, "shard": (0, 2)}, 'reshard_every belongs to shard="local"'),
        ({"shard": "local", "node": 0}, "node needs nodes"),
        ({"shard": "local", "nodes": 2, "node": 2}, "node must be from 0 to 1"),
        ({"shard": "local", "nodes": 0}, "nodes must be"),
        ({"shard": "local", "rank": 0, "world_size": 2}, "needs to know on how many nodes"),
        ({"shard": "local", "rank": 0, "world_size": 4, "nodes": 3}, "are not equally many on each"),
        ({"shard": "local", "order": "weighted", "weights": [1.0] * 40}, "nodes cannot have a part of it each"),
    ],
)
def test_parts_that_make_no_sense(parquet, choices, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        wr.DataLoader(parquet, 4, **choices)


def ranks_of(parquet, world_size, nodes, **choices):
    """The loaders of all ranks."""
    by_node = {"shard": "local", "nodes": nodes} if nodes else {}
    return [
        wr.DataLoader(parquet, 3, seed=6, labels=ROWS, rank=rank, world_size=world_size, **by_node, **choices)
        for rank in range(world_size)
    ]


def test_nodes_have_neighbouring_rows(parquet):
    for choices in ({}, {"shuffle": True}, {"order": "block", "block": (4, 2)}):
        loaders = ranks_of(parquet, 4, 2, **choices)
        rows = [loader.rows(5) for loader in loaders]
        assert [len(of) for of in rows] == [10] * 4
        assert sorted(rows[0] + rows[1]) == ROWS[:20] and sorted(rows[2] + rows[3]) == ROWS[20:]
        copy = pickle.loads(pickle.dumps(loaders[2]))
        assert copy.rows(5) == rows[2] and sum((labels.tolist() for _, labels in copy), []) == copy.rows(0)
    anew = ranks_of(parquet, 4, 2, shuffle=True, reshard_every=3)
    parts = [sorted(anew[0].rows(epoch) + anew[1].rows(epoch)) for epoch in range(6)]
    assert parts[0] == parts[1] == parts[2] == ROWS[:20] and parts[3] == parts[4] == parts[5] != parts[0]


@pytest.mark.parametrize("choices", [{}, {"shuffle": True, "reshard_every": 1}, {"order": "block", "block": (4, 2)}])
@pytest.mark.parametrize(
    ("before", "after"), [((4, 2), (2, 1)), ((2, 2), (4, 4)), ((3, 1), (2, 2)), ((1, 1), (4, 2))]
)
def test_an_epoch_goes_on_with_other_nodes(parquet, before, after, choices):
    """Every row once over three runs, but for fewer than there are ranks, which do not divide."""
    seen, state = [], None
    for (world_size, nodes), batches in ((before, 1), (after, 2), (before, None)):
        states, counts = [], []
        for loader in ranks_of(parquet, world_size, nodes, **choices):
            if state is not None:
                loader.load_state_dict(json.loads(json.dumps(state)))
            else:
                loader.set_epoch(7)
            iterator, had = iter(loader), []
            for taken, (_, labels) in enumerate(iterator, 1):
                had += labels.tolist()
                if taken == batches:
                    break
            states.append(loader.state_dict())
            counts.append(len(had))
            seen += had
        assert all(other == states[0] for other in states) and len(set(counts)) == 1
        state = states[0]
    assert len(set(seen)) == len(seen) and 40 - len(seen) < before[0]
    assert (state["epoch"], state["position"]) == (8, 0)


def test_a_state_of_the_other_kind_is_refused(parquet):
    local, whole = (ranks_of(parquet, 2, nodes, shuffle=True)[0] for nodes in (2, None))
    assert [deal["nodes"] for deal in local.state_dict()["deals"]] == [2] and "deals" not in whole.state_dict()
    for state, loader in ((local.state_dict(), whole), (whole.state_dict(), local)):
        with pytest.raises(ValueError, match="kind of shard"):
            loader.load_state_dict(state)


def test_an_iterable_dataset_goes_on_with_other_nodes(parquet):
    torch_sets = pytest.importorskip("wellread.torch")

    def stream(rank, world_size, nodes):
        choices = {"shard": "local", "rank": rank, "world_size": world_size, "nodes": nodes}
        return torch_sets.IterableDataset(parquet, batch_size=3, shuffle=True, seed=6, labels=ROWS, **choices)

    seen, states = [], []
    for rank in range(4):
        dataset = stream(rank, 4, 2)
        seen += next(iter(dataset))[1].tolist()
        states.append(dataset.state_dict())
    assert all(state == states[0] for state in states) and states[0]["position"] == 12
    again = []
    for rank in range(2):
        dataset = stream(rank, 2, 1)
        dataset.load_state_dict(states[0])
        seen += next(iterator := iter(dataset))[1].tolist()
        again.append(dataset.state_dict())
        assert [deal["first"] for deal in again[-1]["deals"]] == [0, 12]
        del iterator
    assert again[0] == again[1]
    for rank in range(2):
        dataset = stream(rank, 2, 2)
        dataset.load_state_dict(again[0])
        seen += sum((labels.tolist() for _, labels in dataset), [])
    assert sorted(seen) == ROWS


def test_variables_of_torchrun_make_parts(parquet, monkeypatch, caplog):
    seen = []
    for rank in range(4):
        told = TORCHRUN | {"RANK": str(rank), "LOCAL_RANK": str(rank % 2), "GROUP_RANK": str(rank // 2)}
        for name, value in told.items():
            monkeypatch.setenv(name, value)
        loader = wr.DataLoader(parquet, 5, shuffle=True, labels=ROWS, shard="local")
        seen.append(sum((labels.tolist() for _, labels in loader), []))
    assert sorted(seen[0] + seen[1]) == ROWS[:20] and sorted(seen[2] + seen[3]) == ROWS[20:]
    monkeypatch.setenv("GROUP_RANK", "0")
    with pytest.raises(wr.ChoiceError, match="by GROUP_RANK"):
        iter(loader)
