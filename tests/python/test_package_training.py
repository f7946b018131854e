"""The package within Lightning, torchdata, torchvision, MONAI and Flax: training on it, and going on after a stop.

Long because the training loop of each framework is written out, and is stopped and gone on with.
"""

import json
import logging
import os
import shutil
import warnings
from array import array

import numpy as np
import pytest
import tifffile
import torch
import wellread as wr
import wellread.torch
from ports import free_port
from torch import nn
from wellread._tasks import callback
from wellread.lightning import PhaseTimer, WellreadDataModule, _equal_batches, pl

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Net(pl.LightningModule):
    """Tells images of two kinds apart, and keeps which batches it was given."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
        )
        self.seen, self.validated = [], []

    def training_step(self, batch, _):
        pixels, labels = batch
        self.seen.append((self.current_epoch, pixels.sum((1, 2, 3)).tolist()))
        loss = nn.functional.cross_entropy(self.layers(pixels), labels)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        self.validated.extend(batch[0].sum((1, 2, 3)).tolist())

    def predict_step(self, batch, _):
        return self.layers(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class Stop(pl.Callback):
    """Saves a checkpoint after so many steps, and stops there."""

    def __init__(self, path, step):
        self.path, self.step = path, step

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == self.step:
            trainer.save_checkpoint(self.path)
            trainer.should_stop = True
            trainer.limit_train_batches = 0


def trainer(epochs=1, *callbacks, **choices):
    warnings.simplefilter("ignore")
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    choices = {"enable_checkpointing": False, **choices}
    return pl.Trainer(accelerator="cpu", max_epochs=epochs, callbacks=list(callbacks), **quiet, **choices)


def data(path, **choices):
    choices = {"labels": [i % 2 for i in range(40)], "split": (0.6, 0.2, 0.2), "num_workers": 2, **choices}
    return WellreadDataModule(path, 4, **choices)


def sums(path, rows):
    scaled = torch.from_numpy(wr.Dataset(path)[rows].astype(np.float32) * np.float32(1 / 65535))
    return scaled.sum((1, 2, 3)).tolist()


def test_rows_of_parts_are_not_split_by_a_column(labelled):
    """The column was left out without a word: rows of one donor may then be in two parts."""
    for part in ("train", "val", "test"):
        with pytest.raises(ValueError, match=r"split_by keeps .* give one of both \(Dataset.split\(by=...\)"):
            data(labelled, split_by="well", **{part: [1, 2]})
    assert data(labelled, train=[1, 2]).rows("train") == [1, 2]


def test_a_split_by_names_of_combined_sets_is_told(parquet, tmp_path):
    other = tmp_path / "other.parquet"
    shutil.copy(parquet, other)
    both = [parquet, other]
    with pytest.warns(UserWarning, match=r"names of these sets begin .* give split_by=\.\.\.") as told:
        data(both).setup("fit")
    assert sum("names of these sets" in str(one.message) for one in told) == 1
    for of_one, choices in ((parquet, {}), (both, {"split_by": [row // 2 for row in range(80)]})):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            data(of_one, **choices).setup("fit")


def test_a_split_follows_from_names_alone(parquet, labelled, cells):
    parts = {part: data(parquet).rows(part) for part in ("train", "val", "test")}
    assert sorted(sum(parts.values(), [])) == list(range(40)) and all(parts.values())
    # In another format the same images, in whatever order they lie there, fall into the same parts.
    names = {part: {wr.Dataset(parquet).name(row) for row in rows} for part, rows in parts.items()}
    other = data(cells["tiff"])
    assert {part: {other.dataset.name(row) for row in other.rows(part)} for part in parts} == names
    assert data(parquet, split_seed=1).rows("train") != parts["train"]
    assert data(parquet, split=(1, 0, 0)).rows("train") == list(range(40))
    wells = wr.Dataset(labelled).column("well")
    kept = data(labelled, split_by="well", split=(0.5, 0.25, 0.25), split_seed=2)
    of_part = [set(wells[kept.rows(part)]) for part in parts]
    assert sum(map(len, of_part)) == len(set(wells))
    assert kept.rows("val") == wr.Dataset(labelled).split((0.5, 0.25, 0.25), by="well", seed=2)[1]
    assert list(parts.values()) == wr.Dataset(parquet).split((0.6, 0.2, 0.2))
    given = data(parquet, train=[3, 1], test=np.array([7]))
    assert [given.rows(part) for part in parts] == [[3, 1], [], [7]] and given.val_dataloader() == []
    for wrong, error, said in (
        ({"split": (0.5, 0.5)}, ValueError, "three shares"),
        ({"split": (0.5, 0.1, 0.1)}, ValueError, "add up"),
        ({"split_by": [1, 2]}, ValueError, "one key per row"),
        ({"split_by": "nothing"}, KeyError, "nothing"),
        ({"drop_last": True}, TypeError, "train_choices"),
        ({"train_choices": {"shuffle": True, "weights": [1] * 32}}, ValueError, "shuffle=True takes every row once"),
        ({"nonsense": 1}, TypeError, "unexpected keyword argument 'nonsense'"),
        ({"as_": "numpy"}, ValueError, 'as_ must be "torch" here, not .numpy.'),
        ({"train_choices": {"as_": "jax"}}, ValueError, 'as_ must be "torch" here, not .jax.'),
        ({"train_choices": {"nonsense": 1}}, TypeError, "train_choices has 'nonsense'"),
        ({"train": [99]}, ValueError, "99"),
        ({"train": range(30), "val": [29, 31, 7, 7]}, ValueError, "2 rows are in both train and val, .* row 7"),
        ({"train": range(30), "val": [31], "test": [2]}, ValueError, "1 row is in both train and test, .* row 2"),
    ):
        with pytest.raises(error, match=said):
            data(parquet, **wrong).train_dataloader()
    # What is measured on the same rows twice is measured apart from training.
    assert data(parquet, train=range(30), val=[30, 31], test=[31]).rows("test") == [31]
    # Names are looked at before anything is opened.
    for choices in ({"nonsense": 1}, {"train_choices": {"nonsense": 1}}):
        with pytest.raises(TypeError, match="nonsense"):
            WellreadDataModule("no such set", 4, **choices)
    for name, instead in (("rows", "$"), ("sampler", ', and train_choices=."weights": ')):
        for choices in ({name: [0, 1, 2]}, {"train_choices": {name: [0, 1, 2]}}):
            with pytest.raises(TypeError, match=f"^{name}: .* are those of train=, val= and test={instead}"):
                WellreadDataModule("no such set", 4, **choices)
    said = r"in part 'val' \(share 0.2\), 'test' \(share 0.2\) of the split: .* or split_by= with more values"
    with pytest.warns(UserWarning, match=said):
        assert len(data(parquet, split_by=["same"] * 40).rows("train")) == 40
    with pytest.raises(ValueError, match="no image is in the part for training"):
        data(parquet, split_by=["same"] * 40, split=(0, 0.5, 0.5)).train_dataloader()


def test_a_module_is_printed_without_reading_its_images(parquet):
    """Lightning's own words read an epoch of every loader but torch's, and end in an AttributeError."""
    module = data(parquet)
    assert str(module) == repr(module) and str(module).endswith(": not set up)")
    module.setup("fit")
    parts = ", ".join(f"{len(module.rows(part))} rows in {part!r}" for part in ("train", "val", "test"))
    assert str(module).endswith(f": {parts})")
    assert module._train is None
    given = data(parquet, train=range(30), val=[31])
    given.setup("fit")
    assert str(given).endswith(": 30 rows in 'train', 1 row in 'val', 0 rows in 'test')")


def test_rows_of_parts_count_from_the_end_or_are_truth_values(parquet):
    """As rows of a loader and of a dataset do."""
    even = np.arange(40) % 2 == 0
    module = data(parquet, train=even, val=[-1, 1], test=list(~even))
    odd = list(range(1, 40, 2))
    assert [module.rows(part) for part in ("train", "val", "test")] == [list(range(0, 40, 2)), [39, 1], odd]
    ((pixels, _),) = data(parquet, val=np.array([-1, 1]), dtype="stored").val_dataloader()
    assert np.array_equal(pixels.numpy(), wr.Dataset(parquet)[[-1, 1]])
    assert data(parquet, train=torch.from_numpy(even)).rows("train") == list(range(0, 40, 2))
    for wrong, error, said in (
        ({"train": range(40), "val": [-1]}, ValueError, "1 row is in both train and val, the first is row 39"),
        ({"train": [-41]}, ValueError, r"train\[0\] must be at least -40, not -41"),
        ({"train": even[:-1]}, IndexError, "39 truth values were given for 40 rows"),
    ):
        with pytest.raises(error, match=said):
            data(parquet, **wrong).rows("train")


def test_truth_values_of_torch_are_no_rows_and_no_channels(parquet):
    """Python takes a tensor of one truth value for the number 0 or 1."""
    mask = torch.arange(40) % 2 == 0
    with pytest.raises(TypeError, match=r"train\[0\] must be a whole number, not a truth value"):
        WellreadDataModule(parquet, 4, train=mask[:, None]).rows("train")
    with pytest.raises(TypeError, match=r"rows\[0\] must be a whole number, not a truth value"):
        wr.DataLoader(parquet, rows=mask[:, None])
    with pytest.raises(TypeError, match=r"channels\[0\] must be a whole number, not True"):
        wr.DataLoader(parquet, channels=torch.tensor([True, False]))
    with pytest.raises(TypeError, match="rows are whole numbers"):
        wr.Dataset(parquet)[[mask[:1], mask[:1]]]
    assert wr.DataLoader(parquet, rows=mask).rows(0) == list(range(0, 40, 2))
    assert WellreadDataModule(parquet, 4, train=torch.arange(3)).rows("train") == [0, 1, 2]


def test_every_rank_gets_its_share(parquet):
    class Ranks:
        current_epoch, world_size = 3, 3

    for batch_size in (1, 2, 3, 4, 6, 12, 20):
        training = WellreadDataModule(parquet, batch_size, train=range(40), num_workers=0)
        module = WellreadDataModule(parquet, batch_size, val=range(37), num_workers=0, dtype="stored")
        seen, lengths = [], []
        for rank in range(3):
            training.trainer = module.trainer = Ranks()
            module.trainer.global_rank = rank
            assert training.train_dataloader().epoch == 3 and training.train_dataloader().images == 13
            loader = module.val_dataloader()
            lengths.append(len(loader))
            seen.extend(int(image.sum()) for batch in loader for image in batch.numpy())
        assert len(set(lengths)) == 1
        assert sorted(seen) == sorted(int(image.sum()) for image in wr.Dataset(parquet)[:37])
    assert [_equal_batches(4, 12, more) for more in (True, False)] == [5, 4]
    assert (_equal_batches(4, 9, True), _equal_batches(16, 160, True), _equal_batches(1, 9, True)) == (4, 15, 2)


def test_ranks_have_equally_many_batches_of_crops(parquet):
    """Ten rows of one rank and eleven of another are two and three batches of five rows."""

    class Ranks:
        current_epoch, world_size = 0, 3

    module = WellreadDataModule(parquet, 20, val=range(31), crops_per_image=4, random_crop=8, num_workers=0)
    lengths, images = [], []
    for rank in range(3):
        module.trainer = Ranks()
        module.trainer.global_rank = rank
        loader = module.val_dataloader()
        lengths.append(len(loader))
        images.append(sum(map(len, loader)))
    assert lengths == [3, 3, 3] and images == [44, 40, 40]
    with pytest.raises(ValueError, match="cannot hold"):
        WellreadDataModule(parquet, 6, val=range(9), crops_per_image=4, random_crop=8).val_dataloader()


def test_ranks_have_equally_many_batches_of_what_can_be_read(tmp_path, caplog):
    """The second rank's first image is larger than all others, and no image of one of its batches can be read."""

    class Ranks:
        current_epoch, world_size = 0, 2

    for number in range(13):
        path = tmp_path / f"image-{number:02}.tif"
        size = (16, 16) if number == 1 else (8, 8)
        tifffile.imwrite(path, np.full(size, number, np.uint8), compression="zlib")
        if number in (6, 8):
            with tifffile.TiffFile(path) as file:
                [start], [count] = file.pages[0].dataoffsets, file.pages[0].databytecounts
            pixels = bytearray(path.read_bytes())
            pixels[start : start + count] = b"\xff" * count
            path.write_bytes(pixels)
    images = wr.Dataset(tmp_path, layout="files")

    def batches(rank, batch_size, **choices):
        labels = np.arange(13)
        module = WellreadDataModule(
            images, batch_size, val=range(13), labels=labels, dtype="stored", on_error="skip", **choices
        )
        module.trainer = Ranks()
        module.trainer.global_rank = rank
        loader = module.val_dataloader()
        found = [(pixels.amax((1, 2, 3)).tolist(), labels.tolist()) for pixels, labels in loader]
        assert len(found) == len(loader) and all(pixels == labels for pixels, labels in found)
        return [pixels for pixels, _ in found]

    assert batches(0, 2) == [[0, 3], [5, 7], [9, 11]]
    assert batches(1, 2) == [[2, 4], [10], [12]]
    assert "1 of 13 images of the part 'val' are left out" in caplog.text
    # All sizes fit where crops do.
    assert batches(0, 3, crop=(8, 8)) == [[0, 2, 4], [10, 12]]
    assert batches(1, 3, crop=(8, 8)) == [[1, 3, 5, 7], [9, 11]]
    with pytest.raises(wr.ChoiceError, match="2 of 6 batches have no readable image.* larger batches"):
        batches(1, 1)


def test_a_state_that_was_loaded_is_kept_until_training_goes_on(parquet):
    first = WellreadDataModule(parquet, 4, train=range(40), num_workers=0)
    next(iter(first.train_dataloader()))
    state = first.state_dict()
    # A run may be stopped before training, in the check of validation say, and write a checkpoint.
    second = WellreadDataModule(parquet, 4, train=range(40), num_workers=0)
    second.load_state_dict(state)
    assert second.state_dict() == state and state["train"]["position"] == 4
    loader = second.train_dataloader()
    assert second.state_dict() == state
    rest = list(loader)
    assert sum(map(len, rest)) == 36
    assert second.state_dict()["train"]["epoch"] == 1


def test_lightning_trains_on_all_of_it_in_a_new_order_each_epoch(parquet):
    module, net = data(parquet, train_choices={"drop_last": False}), Net()
    trainer(3).fit(net, datamodule=module)
    want = sorted(sums(parquet, module.rows("train")))
    epochs = [[s for epoch, batch in net.seen if epoch == at for s in batch] for at in range(3)]
    assert all(np.allclose(sorted(epoch), want) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert np.allclose(net.validated[-len(module.rows("val")) :], sums(parquet, module.rows("val")))
    predicted = trainer().predict(net, datamodule=module)
    assert sum(len(batch) for batch in predicted) == len(module.rows("test"))


def test_overfitting_takes_the_same_batch_in_each_epoch(parquet, caplog):
    """Lightning turns off the shuffling of torch's loaders alone."""
    ordered = ({"order": "weighted", "weights": [1.0] * 40}, {"weights": np.ones(40)}, {"order": "block"})
    for choices, told in (({}, False), ({"order": "sequential"}, False), *((choices, True) for choices in ordered)):
        caplog.clear()
        module, net = data(parquet, train_choices=choices), Net()
        trainer(3, overfit_batches=1).fit(net, datamodule=module)
        assert [epoch for epoch, _ in net.seen] == [0, 1, 2]
        first = sums(parquet, module.rows("train")[:4])
        assert all(np.allclose(batch, first) for _, batch in net.seen)
        assert ("the order of train_choices is left out" in caplog.text) == told


def test_a_warning_names_the_line_that_trains(parquet):
    """It named one of Lightning, which is the same in every program."""
    module, fitting = data(parquet, split_by=["same"] * 40), trainer(limit_train_batches=1)
    with pytest.warns(UserWarning, match="is in part 'val'") as told:
        fitting.fit(Net(), datamodule=module)
    assert [one.filename for one in told if "in part 'val'" in str(one.message)] == [__file__]


class Told(Net):
    """Writes down what each rank was given; its buffers are synchronised in every forward pass, of validation too."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.layers.insert(1, nn.BatchNorm2d(4))

    def validation_step(self, batch, index):
        super().validation_step(batch, index)
        self.layers(batch[0])

    def on_train_end(self):
        found = {"seen": self.seen, "validated": self.validated}
        (self.folder / f"{self.global_rank}.json").write_text(json.dumps(found))


def test_two_ranks_train_together(parquet, tmp_path, monkeypatch):
    # Else Lightning looks for one.
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    # 17 images for validation: 9 and 8, which would be three batches of 4 and two.
    module = data(parquet, train=range(17, 33), val=range(17), num_workers=1)
    choices = {"devices": 2, "strategy": "ddp_spawn", "num_sanity_val_steps": 0}
    trainer(2, **choices).fit(Told(tmp_path), datamodule=module)
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    for epoch in range(2):
        shares = [[s for at, batch in rank["seen"] if at == epoch for s in batch] for rank in ranks]
        assert np.allclose(sorted(shares[0] + shares[1]), sorted(sums(parquet, list(range(17, 33)))))
    assert len(ranks[0]["validated"]) == 18 and len(ranks[1]["validated"]) == 16
    last = ranks[0]["validated"][9:] + ranks[1]["validated"][8:]
    assert np.allclose(sorted(last), sorted(sums(parquet, list(range(17)))))


@pytest.mark.parametrize("step", [2, 6, 9])
def test_a_checkpoint_goes_on_with_what_was_not_seen(parquet, tmp_path, step):
    choices = {"train": range(24), "val": range(24, 40), "train_choices": {"flip": True}}
    whole = Net()
    trainer(3).fit(whole, datamodule=data(parquet, **choices))
    assert len(whole.seen) == 18
    path = tmp_path / "stopped.ckpt"
    first = Net()
    trainer(3, Stop(path, step)).fit(first, datamodule=data(parquet, **choices))
    rest = Net()
    trainer(3).fit(rest, datamodule=data(parquet, **choices | {"num_workers": 0}), ckpt_path=path)
    assert rest.seen == whole.seen[step:]
    assert first.seen[:step] == whole.seen[:step]


class Crash(pl.Callback):
    """Fails after so many steps."""

    def __init__(self, step):
        self.step = step

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == self.step:
            raise InterruptedError


def shuffled(parquet):
    """A loader of the user's own."""
    labels = [i % 2 for i in range(40)]
    return wellread.torch.DataLoader(parquet, 4, True, labels=labels, rows=range(24), flip=True, num_workers=2)


def module(parquet):
    return data(parquet, train=range(24), train_choices={"flip": True})


def validated(parquet):
    """Its checkpoints are saved after validation, before the epoch has ended."""
    return data(parquet, train=range(24), val=range(24, 40), train_choices={"flip": True})


@pytest.mark.parametrize("made", [shuffled, module, validated])
@pytest.mark.parametrize("batches", [1.0, 4])
@pytest.mark.parametrize("crashes", [False, True])
def test_a_checkpoint_of_the_end_of_an_epoch_goes_on_with_the_next(parquet, tmp_path, made, batches, crashes):
    """As ModelCheckpoint saves it by default, after a run that ended or one that failed in its next epoch."""
    choices = {"limit_train_batches": batches}
    steps = 6 if batches == 1.0 else batches
    whole = Net()
    trainer(4, **choices).fit(whole, made(parquet))
    plain = wr.torch.DataLoader(parquet, 4, True, rows=range(24), flip=True)
    want = [[batch.sum((1, 2, 3)).tolist() for batch in plain][:steps] for _ in range(4)]
    assert whole.seen == [(epoch, batch) for epoch in range(4) for batch in want[epoch]]
    keep = pl.callbacks.ModelCheckpoint(tmp_path / "kept")
    first = Net()
    if crashes:
        with pytest.raises(InterruptedError):
            trainer(4, keep, Crash(2 * steps + 2), enable_checkpointing=True, **choices).fit(first, made(parquet))
    else:
        trainer(2, keep, enable_checkpointing=True, **choices).fit(first, made(parquet))
    assert first.seen == whole.seen[: 2 * steps + 2 * crashes]
    [path] = (tmp_path / "kept").iterdir()
    rest = Net()
    trainer(4, **choices).fit(rest, made(parquet), ckpt_path=path)
    assert rest.seen == whole.seen[2 * steps :]


@pytest.mark.parametrize("made", [shuffled, module])
def test_two_ranks_go_on_with_the_next_epoch(parquet, tmp_path, monkeypatch, made):
    def seen(name, epochs, *callbacks, **options):
        # Else Lightning looks for one.
        monkeypatch.setenv("MASTER_PORT", str(free_port()))
        (tmp_path / name).mkdir()
        choices = {"devices": 2, "strategy": "ddp_spawn", "enable_checkpointing": bool(callbacks)}
        trainer(epochs, *callbacks, **choices).fit(Told(tmp_path / name), made(parquet), **options)
        return [json.loads((tmp_path / name / f"{rank}.json").read_text())["seen"] for rank in range(2)]

    whole = seen("whole", 3)
    first = seen("first", 2, pl.callbacks.ModelCheckpoint(tmp_path / "kept"))
    [path] = (tmp_path / "kept").iterdir()
    rest = seen("rest", 3, ckpt_path=path)
    assert [len(of) for of in whole] == [9, 9] and whole[0] != whole[1]
    assert [a + b for a, b in zip(first, rest, strict=True)] == whole


def test_phases_are_measured(parquet, tmp_path, monkeypatch):
    monkeypatch.setenv("WELLREAD_PHASES", str(tmp_path / "phases.jsonl"))
    timer = PhaseTimer(tmp_path / "made" / "fit.json")
    with timer.phase("model_initialization"):
        net = Net()
    module = data(parquet, train=range(24), val=range(24, 40))
    trainer_ = trainer(2, timer)
    profiler = trainer_.profiler
    trainer_.fit(net, datamodule=module)
    assert trainer_.profiler is profiler
    results = json.loads((tmp_path / "made" / "fit.json").read_text())
    assert results == timer.results and results["success"] and results["device"] == "cpu"
    metrics = results["metrics"]
    whole = metrics["total_training"]["elapsed_seconds"]
    assert 0 < metrics["full_training"]["elapsed_seconds"] < whole
    assert metrics["epoch_breakdown"]["first_epoch"]["elapsed_seconds"] < metrics["full_training"]["elapsed_seconds"]
    assert metrics["model_initialization"]["elapsed_seconds"] > 0 and metrics["data_setup"]["elapsed_seconds"] > 0
    batch = metrics["batch_breakdown"]
    assert set(batch) == {
        "first_batch_loading",
        "first_batch_to_device",
        "first_batch_forward",
        "first_batch_postprocess",
    }
    assert metrics["epoch_breakdown"]["data_loading_first_batch"] == batch["first_batch_loading"]
    assert metrics["epoch_breakdown"]["model_forward_first_batch"] == batch["first_batch_forward"]
    assert (
        sum(t["elapsed_seconds"] for t in batch.values())
        < metrics["epoch_breakdown"]["first_epoch"]["elapsed_seconds"]
    )
    assert all(t["elapsed_seconds"] > 0 and t["peak_memory_mb"] > 50 for t in batch.values())
    steady = metrics["steady_state"]
    assert steady["steps"] == 11 and steady["step_seconds"]["p50"] > 0
    # Of so few steps, the 95th percentile would be the maximum.
    assert steady["step_seconds"]["p95"] is None and steady["data_wait_seconds"]["p95"] is None
    assert (
        0 < steady["data_wait_seconds"]["mean"] < steady["step_seconds"]["mean"]
        and 0 < steady["data_wait_fraction"] < 1
    )
    info = metrics["dataset_info"]
    assert (info["num_batches"], info["num_train_batches"], info["batch_size"]) == (6, 6, 4)
    peaks = metrics["peak_memory"]
    assert peaks["host_rss_mb"] >= metrics["full_training"]["peak_memory_mb"] > 0 and peaks["host_pss_mb"] > 50
    assert metrics["final_metrics"].keys() == {"loss"}
    lines = [json.loads(line) for line in (tmp_path / "phases.jsonl").read_text().splitlines()]
    told = {line["phase"]: line["elapsed_seconds"] for line in lines if "phase" in line}
    assert len(told) == sum("phase" in line for line in lines)
    assert told["first_batch_forward"] == batch["first_batch_forward"]["elapsed_seconds"]
    for name in ("data_setup", "model_initialization", "full_training", "total_training"):
        assert told[name] == metrics[name]["elapsed_seconds"]
    waits = sum((line["seconds"] for line in lines if line.get("samples") == "batch_loading"), [])
    epochs = sum((line["seconds"] for line in lines if line.get("samples") == "epoch"), [])
    # One pass over the data, after the first.
    assert len(epochs) == 2 and info["avg_time_per_batch"] == pytest.approx(epochs[1] / 6)
    assert info["throughput_samples_per_sec"] == pytest.approx(info["num_samples"] / epochs[1])
    assert len(waits) == 12 and np.mean(waits[1:]) == pytest.approx(steady["data_wait_seconds"]["mean"])
    monkeypatch.delenv("WELLREAD_PHASES")
    # The same callback again, for prediction; and over a loader without a DataModule.
    trainer(1, timer).predict(net, wr.DataLoader(parquet, 8, as_="torch", labels=[0] * 40))
    metrics = timer.results["metrics"]
    assert "total_inference" in metrics and "full_prediction" in metrics and "epoch_breakdown" not in metrics
    assert metrics["inference_info"]["num_batches"] == 5 and metrics["steady_state"]["steps"] == 4
    whole = metrics["full_prediction"]["elapsed_seconds"]
    assert metrics["inference_info"]["avg_time_per_batch"] == pytest.approx(whole / 5)
    assert metrics["full_prediction"]["peak_host_memory_mb"] == metrics["full_prediction"]["peak_memory_mb"] > 50
    assert len((tmp_path / "phases.jsonl").read_text().splitlines()) == len(lines)
    # The file has both runs: it had the last one alone.
    written = json.loads((tmp_path / "made" / "fit.json").read_text())
    assert written == timer.results and written["run"] == "predict"
    assert results["run"] == "fit" and "earlier_runs" not in results and written["earlier_runs"] == [results]


def test_a_percentile_needs_enough_steps():
    summary = callback._summary(array("d", [1.0] * 10 + [3.0] * 9))
    assert (summary["p50"], summary["p95"]) == (1.0, None)
    assert callback._summary(array("d", range(20)))["p95"] == pytest.approx(18.05)
    assert callback._summary(array("d")) is None


def test_phases_of_a_run_that_fails_are_written(parquet, tmp_path):
    class Broken(Net):
        def training_step(self, batch, index):
            if self.current_epoch == 1:
                raise FloatingPointError("the user's own")
            return super().training_step(batch, index)

    timer = PhaseTimer(tmp_path / "failed.json")
    with pytest.raises(FloatingPointError):
        trainer(2, timer).fit(Broken(), datamodule=data(parquet, train=range(24), val=range(24, 40)))
    results = json.loads((tmp_path / "failed.json").read_text())
    assert not results["success"] and results["error"] == "FloatingPointError: the user's own"
    assert results["metrics"]["epoch_breakdown"]["first_epoch"]["elapsed_seconds"] > 0
    assert results["metrics"]["steady_state"]["steps"] == 5


def test_phases_of_a_run_that_diverges_are_json(parquet, tmp_path):
    class Diverging(Net):
        def training_step(self, batch, index):
            self.log("of_user", torch.tensor(float("nan")))
            return super().training_step(batch, index)

    timer = PhaseTimer(tmp_path / "diverged.json")
    trainer(1, timer).fit(Diverging(), datamodule=data(parquet, train=range(24), val=range(24, 40)))
    # Python alone reads NaN.
    text = (tmp_path / "diverged.json").read_text()
    results = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert results["metrics"]["final_metrics"]["of_user"] is None


@pytest.mark.parametrize("workers", [0, 2])
def test_torchdatas_stateful_loader_resumes_it(parquet, workers):
    from torchdata.stateful_dataloader import StatefulDataLoader

    dataset = wellread.torch.Dataset(parquet, labels=list(range(40)))

    def loader():
        context = "fork" if workers else None
        return StatefulDataLoader(
            dataset, 4, shuffle=True, num_workers=workers, collate_fn=wellread.torch.collate,
            multiprocessing_context=context, generator=torch.Generator().manual_seed(7),
        )  # fmt: skip

    whole = [labels.tolist() for _, labels in loader()]
    assert sorted(sum(whole, [])) == list(range(40))
    stopped = loader()
    iterator = iter(stopped)
    assert [next(iterator)[1].tolist() for _ in range(3)] == whole[:3]
    state = stopped.state_dict()
    del iterator
    resumed = loader()
    resumed.load_state_dict(state)
    rest = list(resumed)
    assert [labels.tolist() for _, labels in rest] == whole[3:]
    images = wr.Dataset(parquet)
    assert all(np.array_equal(pixels.numpy(), images[labels.tolist()]) for pixels, labels in rest)


@pytest.mark.parametrize("workers", [0, 2, 3])
@pytest.mark.parametrize("batch_size", [None, 4])
def test_torchdatas_stateful_loader_resumes_the_workers_of_the_iterable_dataset(parquet, caplog, workers, batch_size):
    from torchdata.stateful_dataloader import StatefulDataLoader

    def loader():
        dataset = wellread.torch.IterableDataset(
            parquet, batch_size=batch_size, shuffle=True, seed=3, flip=True, labels=range(40)
        )
        context = "fork" if workers else None
        return StatefulDataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context=context)

    def seen(batches):
        return [(torch.as_tensor(labels).tolist(), float(pixels.sum())) for pixels, labels in batches]

    whole = seen(loader())
    assert len(whole) == (40 if batch_size is None else 10)
    for stop in (1, 5, len(whole)):
        stopped = loader()
        iterator = iter(stopped)
        assert seen(next(iterator) for _ in range(stop)) == whole[:stop]
        state = stopped.state_dict()
        del iterator
        resumed = loader()
        resumed.load_state_dict(state)
        assert seen(resumed) == whole[stop:]
    # Otherwise it says that it goes through what was delivered before.
    assert "fast-forward" not in caplog.text


def test_torchdatas_nodes_take_the_loader_as_it_is(parquet):
    from torchdata.nodes import IterableWrapper, Loader

    def loader():
        return Loader(IterableWrapper(wr.DataLoader(parquet, 4, shuffle=True, as_="torch", labels=list(range(40)))))

    nodes = loader()
    whole = []
    for at, (_, labels) in enumerate(nodes):
        whole.append(labels.tolist())
        if at == 3:
            state = nodes.state_dict()
    resumed = loader()
    resumed.load_state_dict(state)
    assert [labels.tolist() for _, labels in resumed] == whole[4:]


def test_labels_from_columns_reach_the_model(labelled):
    loader = wr.DataLoader(labelled, 8, True, as_="torch", labels="class", num_workers=2)
    model = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(32, 3))
    for pixels, labels in loader:
        assert labels.dtype == torch.int64 and labels.shape == (8,)
        nn.functional.cross_entropy(model(pixels), labels).backward()
    _, several = next(iter(wr.DataLoader(labelled, 8, as_="torch", columns=["class", "live", "well", "score"])))
    assert several["live"].dtype == torch.bool and several["score"].dtype == torch.float32
    assert several["class"].tolist() == [0, 1, 2] * 2 + [0, 1] and several["well"] == ["A00"] * 8


def test_transforms_of_others_see_every_image_once(parquet):
    import monai.transforms
    from torchvision.transforms import v2

    torch.manual_seed(0)
    want = torch.from_numpy(wr.Dataset(parquet)[:].astype(np.float32) * np.float32(1 / 65535))
    chain = v2.Compose([v2.RandomCrop(32), v2.RandomHorizontalFlip(), v2.GaussianBlur(3), v2.Normalize([0.5], [0.5])])
    batches = list(wr.DataLoader(parquet, 16, as_="torch", transform=chain, num_workers=2))
    assert [tuple(batch.shape) for batch in batches] == [(16, 2, 32, 32)] * 2 + [(8, 2, 32, 32)]
    turned = monai.transforms.Compose([monai.transforms.Rotate90(k=1), monai.transforms.ScaleIntensity(0, 1)])
    got = torch.cat([torch.as_tensor(batch) for batch in wr.DataLoader(parquet, 16, as_="torch", transform=turned)])
    rotated = torch.rot90(want, 1, (2, 3))
    low, high = (f(rotated, (1, 2, 3), keepdim=True) for f in (torch.amin, torch.amax))
    assert torch.allclose(got, (rotated - low) / (high - low), atol=1e-5)
    # Where workers are processes, random transforms differ from image to image all the same.
    dataset = wellread.torch.Dataset(parquet, transform=v2.RandomCrop(8))
    loader = torch.utils.data.DataLoader(dataset, 8, num_workers=2, multiprocessing_context="fork", sampler=[0] * 32)
    crops = torch.cat(list(loader))
    assert len({crop.numpy().tobytes() for crop in crops}) > 16


def test_flax_trains_on_arrays_of_the_loader(parquet):
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    import optax
    from flax import nnx

    class Classifier(nnx.Module):
        def __init__(self, rngs):
            self.conv = nnx.Conv(2, 8, (3, 3), rngs=rngs)
            self.out = nnx.Linear(8, 2, rngs=rngs)

        def __call__(self, pixels):
            return self.out(nnx.relu(self.conv(pixels.transpose(0, 2, 3, 1))).mean((1, 2)))

    @nnx.jit
    def step(model, optimizer, pixels, labels):
        def cost(model):
            return optax.softmax_cross_entropy_with_integer_labels(model(pixels), labels).mean()

        value, gradients = nnx.value_and_grad(cost)(model)
        optimizer.update(model, gradients)
        return value

    model = Classifier(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    # What is to be told apart: whether the first channel was taken to a tenth of its light.
    bright = np.arange(40) % 2
    loader = wr.DataLoader(
        parquet, 8, True, seed=1, num_workers=2, as_="jax", labels=bright, scale=(0, 4000), drop_last=True
    )
    losses = []
    for _ in range(12):
        for pixels, labels in loader:
            assert isinstance(pixels, jax.Array) and pixels.shape == (8, 2, 48, 56)
            dimmed = pixels.at[:, 0].multiply(jax.numpy.where(labels == 1, 1.0, 0.1)[:, None, None])
            losses.append(float(step(model, optimizer, dimmed, labels)))
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])
