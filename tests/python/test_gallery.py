"""The gallery: scripts run with small settings and give sound values; pages show what the scripts have."""

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "examples" / "gallery"
PAGES = ROOT / "docs" / "gallery"
PICTURES = ROOT / "docs" / "images" / "gallery"
NAMES = sorted(path.stem for path in SCRIPTS.glob("[!_]*.py") if path.stem != "run_all")
MOST_BYTES = 150_000


def module(name):
    """A script of the gallery as a module, without its folder staying on the path."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        spec = importlib.util.spec_from_file_location(f"gallery_{name}", SCRIPTS / f"{name}.py")
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded
    finally:
        sys.path.remove(str(SCRIPTS))


def run(name, tmp_path, *options, code=0, real=""):
    """The output of a script, and its result; on generated images, or on those in the folder `real`."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "WELLREAD_SHARED": str(real)}
    command = [sys.executable, SCRIPTS / f"{name}.py", "--out", tmp_path / "out", *map(str, options)]
    # For what hangs: the longest takes an idle machine a minute.
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=environment, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    picture = tmp_path / "out" / f"{name}.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size <= MOST_BYTES
    return done.stdout, json.loads((tmp_path / "out" / f"{name}.json").read_text())


@pytest.mark.parametrize("ends", [(1.03, 4.03), (0.1, 1.2), (1.7, 1.9), (0.003, 700.0)])
def test_logarithmic_axes_have_three_numbers_or_more(ends):
    pytest.importorskip("PIL")
    found = module("_picture")._ticks(ends, logarithmic=True)
    assert len(found) >= 3 and found == sorted(found)
    assert ends[0] - 1e-9 <= found[0] and found[-1] <= ends[1] + 1e-9


def test_names_of_near_dots_do_not_touch():
    drawing = module("_picture")
    sheet = drawing.Sheet(300, 120, "")
    written = []
    sheet.words = lambda x, y, text, size, *_: written.append((x, y, text, size))
    dots = [(100, 60 + near, f"format (codec {near})", "black", near == 3) for near in range(5)]
    drawing.names(sheet, dots)
    assert sorted(text for *_, text, _ in written) == sorted(name for _, _, name, *_ in dots)
    right = sorted(y for x, y, *_ in written if x == 110)
    assert len(right) == 4 and min(np.diff(right)) >= 11
    assert max(abs(y - 60) for y in right) < 40
    # However many there are.
    written.clear()
    drawing.names(sheet, [(100, 60, str(name), "black", False) for name in range(60)])
    assert min(np.diff(sorted(y for _, y, *_ in written))) >= 11 and len(written) == 60


def test_colours_of_images_do_not_tint_words(tmp_path):
    drawing = module("_picture")
    sheet = drawing.Sheet(120, 80, "words")
    green = np.random.default_rng(0).integers(0, 255, (40, 60, 3), np.uint8) // np.array([3, 1, 3], np.uint8)
    sheet.image((10, 30, 70, 70), green)
    sheet.save(tmp_path / "sheet.png")
    pixels = np.asarray(Image.open(tmp_path / "sheet.png").convert("RGB")).astype(int)
    beside = pixels[:28].reshape(-1, 3)
    assert (np.ptp(beside, 1) == 0).all() and beside.min() <= 34 and beside.max() == 255
    # The image keeps its colours.
    assert np.abs(pixels[32:68, 12:68] - np.asarray(sheet.picture.reduce(2))[32:68, 12:68]).mean() < 8


def test_each_script_has_a_page_a_picture_and_a_place_in_the_index():
    assert len(NAMES) == 6
    index = (PAGES / "README.md").read_text()
    for name in NAMES:
        page = PAGES / f"{name.replace('_', '-')}.md"
        lines = page.read_text().splitlines()
        assert len(lines) < 120, page
        # The picture comes first, after the title.
        assert re.fullmatch(rf"!\[.+\]\(\.\./images/gallery/{name}\.png\)", lines[2]), page
        assert f"images/gallery/{name}.png)]({page.name})" in index
        assert f"\npython examples/gallery/{name}.py\n" in page.read_text()
        assert 0 < (PICTURES / f"{name}.png").stat().st_size <= MOST_BYTES
    assert {path.stem for path in PICTURES.iterdir()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_lines_of_its_script(name):
    script = {line.strip() for line in (SCRIPTS / f"{name}.py").read_text().splitlines()}
    page = (PAGES / f"{name.replace('_', '-')}.md").read_text()
    shown = [line.strip() for block in re.findall(r"```python\n(.*?)```", page, re.S) for line in block.splitlines()]
    assert len(shown) >= 5
    assert not [line for line in shown if line not in script]


def test_nuclei_are_segmented(tmp_path):
    _, result = run("segment_nuclei", tmp_path, "--steps", 25, "--size", 96)
    assert result["sites"] == 24
    assert math.isfinite(result["last_loss"]) and result["last_loss"] < result["first_loss"] / 2
    assert result["iou_model"] > 0.5, result


def test_nuclei_of_nf1_s_own_images_are_segmented(shared, tmp_path):
    if not (shared / "nf1" / "masks").is_dir():
        pytest.skip("no NF1 images and masks in the shared folder")
    said, result = run("segment_nuclei", tmp_path, "--steps", 20, "--size", 96, real=shared)
    # 15 files are 5 sites of 3 channels, and of the masks those of the nuclei count.
    assert "5 sites of (3, 904, 1224): 4 to train, 1 to test" in said and result["sites"] == 5
    assert len(result["losses"]) == 20 and all(map(math.isfinite, result["losses"]))
    assert result["last_loss"] < result["first_loss"], result


def test_an_encoder_is_pretrained_on_jump_s_own_field(shared, tmp_path):
    if not (shared / "jump").is_dir():
        pytest.skip("no JUMP images in the shared folder")
    said, result = run("pretrain_cells", tmp_path, "--steps", 80, real=shared)
    assert "1 sites of (3, 1080, 1080)" in said and result["sites"] == 1 and result["cells"] > 100
    losses = result["losses"]
    assert len(losses) > 1 and all(map(math.isfinite, losses)) and losses[-1] < max(losses)
    # No column tells a treatment, so there is nothing to agree with.
    assert "agreement" not in result
    assert (tmp_path / "out" / "encoder.pt").is_file()


def test_a_stain_is_predicted(tmp_path):
    said, result = run("label_free", tmp_path, "--steps", 50, "--size", 64)
    assert "24 sites: DNA from ER, RNA, AGP, Mito" in said
    assert math.isfinite(result["last_loss"]) and result["last_loss"] < result["first_loss"] / 2
    assert result["r_model"] > 0.5, result


def test_channels_that_are_not_there_are_named(tmp_path):
    command = [sys.executable, SCRIPTS / "label_free.py", "--inputs", "GFP", "--out", tmp_path]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "WELLREAD_SHARED": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 1 and "there is no channel GFP: the channels are DNA, ER, RNA" in done.stderr


def test_an_encoder_is_pretrained(tmp_path):
    _, result = run("pretrain_cells", tmp_path, "--steps", 40)
    # At first the teacher is the student, and they agree: the loss rises before it falls.
    losses = result["losses"]
    assert len(losses) > 1 and all(map(math.isfinite, losses)) and losses[-1] < max(losses)
    assert result["sites"] == 48 and result["cells"] > 200
    # Half of the cells were given a compound, so that chance is about one half.
    assert 0.4 < result["agreement"] <= 1
    assert (tmp_path / "out" / "encoder.pt").is_file()


def test_each_cell_has_a_row_of_features(tmp_path):
    import pandas as pd
    import torch
    import wellread

    said, result = run("embed_umap", tmp_path, "--steps", 10)
    assert result["rows"] == result["cells"] > 200 and result["wells"] == 24
    table = pd.read_parquet(tmp_path / "out" / "cells.parquet")
    features = [name for name in table.columns if name.startswith("embedding_")]
    assert len(table) == result["cells"] and len(features) == 128
    assert {"Metadata_Well", "Metadata_Dose", "Metadata_Compound"} <= set(table.columns)
    for package, instead in (("pycytominer", result["profiles_by"] == "NumPy"), ("umap", result["map"] != "UMAP")):
        here = importlib.util.find_spec(package) is not None
        assert here != instead and here != (f"{package} is missing" in said)
    # The command and the loader give the model the same pixels.
    pretraining, models = module("pretrain_cells"), module("_models")
    # The same plate once more: that of the script went with it.
    assert not list(tmp_path.glob("wellread-example-*"))
    plate = module("_common").plate()
    cells = wellread.Dataset(plate / "images").cells(plate / "cells.parquet", size=64)
    saved = torch.load(tmp_path / "out" / "encoder_umap.pt", weights_only=True)
    encoder = models.Encoder(5).eval()
    encoder.load_state_dict(saved["weights"])
    wanted = pretraining.embedded(encoder, cells.select(range(20)), (saved["low"], saved["high"]))
    np.testing.assert_allclose(table[features][:20].to_numpy(), wanted, rtol=1e-3, atol=1e-4)


def test_a_pull_request_has_a_verdict_and_a_code(tmp_path):
    _, result = run("guard_pull_request", tmp_path, "--images", 24, "--seconds", 4)
    assert len(result["requests"]) == 2
    for i, request in enumerate(result["requests"]):
        assert request["comparable"] and request["ratio"] > 0
        # How fast this machine is does not matter: the code follows the verdict.
        assert request["code"] in (0, 3) and (request["code"] == 0 or request["verdict"] == "slower")
        assert (tmp_path / "out" / "guard" / f"comparison-{i}.md").read_text().strip()
    same, smaller = (request["size"] for request in result["requests"])
    assert same == 1 and smaller < 1


def test_formats_are_scaled_to_the_screen(tmp_path):
    # Within so few seconds a busy machine tries the format as it is alone.
    _, result = run("choose_format", tmp_path, "--seconds", 6, "--formats", "parquet,tiff", "--images", 2_000_000)
    assert result["image"] == "3 x 540 x 540 uint16" and result["ways"]
    raw = 2_000_000 * 3 * 540 * 540 * 2 / 1e12
    for way in result["ways"]:
        assert 0.1 * raw < way["terabytes"] < 1.2 * raw and 0 < way["hours_least"] <= way["hours"]
    assert result["chosen"] in {way["name"] for way in result["ways"]}


def test_the_smallest_of_the_fastest_is_chosen():
    def way(name, terabytes, hours, least, cold=True):
        return {"name": name, "terabytes": terabytes, "hours": hours, "hours_least": least, "cold": cold}

    choose = module("choose_format").choose
    ways = [way("fast", 3.0, 1.0, 0.9), way("as fast", 2.0, 1.2, 1.05), way("slow", 1.0, 2.0, 1.9)]
    assert choose(ways)["name"] == "as fast"
    # What was measured in memory alone takes no part, unless there is nothing else.
    assert choose([*ways, way("warm", 0.5, 0.1, 0.1, cold=False)])["name"] == "as fast"
    assert choose([way("warm", 0.5, 0.1, 0.1, cold=False)])["name"] == "warm"


def test_neighbours_are_those_of_other_wells():
    nearest, agreement = module("pretrain_cells").nearest, module("pretrain_cells").agreement
    features = np.array([[1, 0], [1, 0.1], [1, 0.2], [0, 1], [0.1, 1], [0.2, 1]], np.float32)
    assert nearest(features, 1).ravel().tolist() == [1, 2, 1, 4, 5, 4]
    wells = np.array(["A", "A", "B", "A", "A", "B"])
    assert nearest(features, 1, wells).ravel().tolist() == [2, 2, 1, 5, 5, 4]
    many = np.repeat(features, 12, 0) + np.linspace(0, 0.01, 72)[:, None].astype(np.float32)
    groups = np.repeat([0, 0, 0, 1, 1, 1], 12)
    assert agreement(many, groups, np.tile(np.arange(12), 6)) == 1


def test_otsu_lies_between_two_classes():
    values = np.concatenate([np.full(500, 10.0), np.full(200, 90.0)])
    assert 10 < module("_common").otsu(values) < 90


def test_a_missing_package_is_named(tmp_path):
    run_all = module("run_all")
    assert set(run_all.NEEDS) == set(run_all.SMALL) == set(NAMES)
    assert run_all.missing({"no_such_module": "no-such-package", "json": "json"}) == ["no-such-package"]
    # Without torch: the script is left out, and the others run.
    blind = (
        "import importlib.util as u; find = u.find_spec; u.find_spec = lambda n: None if n == 'torch' else find(n)"
    )
    program = f"import sys; {blind}; sys.path.insert(0, {str(SCRIPTS)!r}); import run_all; sys.exit(run_all.main())"
    command = [sys.executable, "-c", program, "--only", "label_free,choose_format", "--small", "--out", tmp_path]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "WELLREAD_SHARED": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=1800)
    assert done.returncode == 1, done.stderr
    assert "label_free: left out, torch missing: pip install torch" in done.stdout
    assert "1 of 2 ran" in done.stdout and "not: label_free" in done.stdout
    assert (tmp_path / "choose_format.png").is_file()
