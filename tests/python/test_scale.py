"""The model of many nodes, and the simulation that checks it (benches/scale.py): no measurement, and no program."""

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benches" / "scale.py"


@pytest.fixture(scope="module")
def scale():
    """The script; it adds its own folder to the path, which is taken away again."""
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("scale_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before


def free(scale, **given):
    """A plan in which nothing costs anything that counts, but for what is given."""
    nothing = {
        "nodes": 1, "images": 1_000, "piece": 1, "bytes_per_image": 1e6, "written_per_image": 0.0,
        "decode_per_s": 1e9, "gpu_per_s": 1e9, "link_bytes_per_s": 1e15, "disk_bytes_per_s": 1e15,
        "bucket_bytes_per_s": 1e15, "bucket_requests_per_s": 1e12, "network_bytes_per_s": 1e15,
        "gradient_bytes": 0.0, "latency_s": 0.0,
        "dispatch_s": 0.0, "jitter": 0.0, "step_jitter": 0.0, "cores": 1,
    }  # fmt: skip
    return scale.Plan(**(nothing | given))


# What is given, the seconds by hand, and what binds.
EXACT = {
    "link": ({"link_bytes_per_s": 1e8}, 10.0, "link"),
    "decode": ({"cores": 4, "decode_per_s": 25.0}, 10.0, "decode"),
    "latency": ({"latency_s": 0.04, "at_once": 4, "requests_per_image": 2.0}, 20.04, "latency"),
    "gpu": ({"workload": "embed", "gpu_per_s": 50.0}, 20.0, "gpu"),
    "gpu of a step": ({"workload": "train", "gpu_per_s": 50.0, "nodes": 4}, 5.0, "gpu"),
    "upload": ({"written_per_image": 2e6, "link_bytes_per_s": 1e8}, 20.01, "upload"),
    "driver": ({"nodes": 8, "dispatch_s": 0.005}, 5.0, "driver"),
    # It sends out 500 parts.
    "driver of parts": ({"nodes": 8, "piece": 10, "part": 2, "dispatch_s": 0.005}, 2.5, "driver"),
    "bucket, 64 nodes": ({"nodes": 64, "images": 6_400, "bucket_bytes_per_s": 1e8}, 64.0, "bucket bytes"),
    "bucket, both ways": (
        {"nodes": 64, "images": 6_400, "written_per_image": 3e6, "bucket_bytes_per_s": 1e8}, 256.0, "bucket bytes",
    ),
    "requests, 64 nodes": ({"nodes": 64, "images": 6_400, "bucket_requests_per_s": 100.0}, 64.0, "bucket requests"),
    "link, 64 nodes": ({"nodes": 64, "images": 64_000, "link_bytes_per_s": 1e8}, 10.0, "link"),
    # Two of 64 nodes take twice as long: 62 + 2/2 nodes' pace where pieces are dealt, half of it where steps are.
    "stragglers": (
        {"nodes": 64, "images": 63_000, "stragglers": 2 / 64, "slowdown": 2.0, "link_bytes_per_s": 1e8}, 10.0, "link",
    ),
    "stragglers of steps": (
        {"workload": "train", "nodes": 64, "images": 64_000, "stragglers": 2 / 64, "slowdown": 2.0,
         "gpu_per_s": 100.0}, 20.0, "gpu of slow nodes",
    ),
    # The first epoch comes over the link, 10 s; of the others a half, 5 s each.
    "cache of a half": (
        {"workload": "train", "epochs": 3, "nodes": 2, "images": 2_000, "cache_bytes": 5e8, "link_bytes_per_s": 1e8},
        20.0, "link",
    ),
    "cache of all": (
        {"workload": "train", "epochs": 3, "link_bytes_per_s": 1e8, "disk_bytes_per_s": 2e8, "cache_bytes": 1e9},
        20.0, "link",
    ),
    # A step of 10 images: 0.1 s of computing, and 2 * 3/4 of 1e8 bytes over 1e9 bytes/s.
    "gradients": (
        {"workload": "train", "nodes": 4, "images": 4_000, "gpu_per_s": 100.0, "batch": 10, "gradient_bytes": 1e8,
         "network_bytes_per_s": 1e9}, 25.0, "gpu",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_model_and_simulation_find_what_is_known_exactly(scale, name):
    given, seconds, bound_by = EXACT[name]
    plan = free(scale, **given)
    model, simulated = scale.predict(plan), scale.simulate(plan)
    assert model.bound_by == bound_by
    assert model.seconds == pytest.approx(seconds, rel=0.005)
    assert simulated.seconds == pytest.approx(seconds, rel=0.01)
    assert simulated.requests == pytest.approx(model.requests, rel=0.01)
    assert simulated.link_bytes == pytest.approx(model.link_bytes, rel=0.01)
    assert simulated.gpu_idle == pytest.approx(model.gpu_idle, abs=0.01)


def test_requests_bytes_and_idle_are_those_by_hand(scale):
    plan = free(scale, workload="embed", requests_per_image=1.5, gpu_per_s=200.0, link_bytes_per_s=1e8)
    found = scale.simulate(plan)
    # 1,000 images in 10 s on a GPU that takes 200 a second: it is idle for half of the time.
    assert (found.requests, found.link_bytes) == (1500.0, 1e9)
    assert found.gpu_idle == pytest.approx(0.5, abs=0.005)


@pytest.mark.parametrize("workload", ["convert", "embed", "train"])
@pytest.mark.parametrize("nodes", [1, 16, 64])
def test_the_two_agree_within_a_tenth_with_jitter_where_one_thing_binds(scale, workload, nodes):
    plan = free(
        scale, workload=workload, nodes=nodes, images=400 * nodes, jitter=0.2, link_bytes_per_s=1e8,
        bucket_bytes_per_s=4e9, decode_per_s=400.0, gpu_per_s=400.0, ahead=8,
    )  # fmt: skip
    assert scale.simulate(plan).seconds == pytest.approx(scale.predict(plan).seconds, rel=0.1)


@pytest.mark.parametrize("nodes", [2, 8, 64])
def test_a_step_waits_for_the_slowest_of_all_nodes(scale, nodes):
    plan = free(scale, workload="train", nodes=nodes, images=1_000 * nodes, gpu_per_s=100.0, step_jitter=0.05)
    simulated = scale.simulate(plan).seconds
    assert simulated == pytest.approx(scale.predict(plan).seconds, rel=0.01)
    # 10 s without jitter; the largest of 2 normal values is 0.56 deviations over the mean, of 64 it is 2.39.
    assert simulated == pytest.approx({2: 10.28, 8: 10.71, 64: 11.19}[nodes], rel=0.01)


@pytest.mark.parametrize("workload", ["convert", "train"])
def test_failures_cost_what_the_model_says_on_average(scale, workload):
    plan = free(
        scale, workload=workload, nodes=8, images=80_000, piece=10, link_bytes_per_s=1e8, mtbf_s=400.0, restart_s=5.0,
        checkpoint_s=10.0,
    )  # fmt: skip
    quiet = scale.predict(replace(plan, mtbf_s=0.0)).seconds
    model = scale.predict(plan).seconds
    runs = [scale.simulate(replace(plan, seed=seed)).seconds for seed in range(20)]
    assert all(run >= quiet * 0.999 for run in runs)
    assert sum(runs) / len(runs) == pytest.approx(model, rel=0.05)
    assert model > quiet * 1.005


@pytest.mark.parametrize("seed", range(10))
def test_no_piece_is_lost_or_done_twice_where_nodes_fail(scale, seed):
    plan = free(scale, nodes=6, images=3_000, link_bytes_per_s=1e8, mtbf_s=2.0, restart_s=0.5, jitter=0.3, seed=seed)
    run = sys.modules[scale.simulate.__module__].Simulation(plan)
    found = run.run()
    assert (run.done, len(run.left)) == (3_000, 0)
    assert not any(node.begun for node in run.nodes)
    # What was begun before a failure was asked for again.
    assert found.requests > 3_000


def test_a_seed_gives_one_result(scale):
    plan = replace(scale.page_plan(), workload="train", images=1_000_000, piece=16_000, mtbf_s=20_000.0)
    assert scale.simulate(plan) == scale.simulate(plan)
    assert scale.simulate(plan) != scale.simulate(replace(plan, seed=1))


def test_nodes_that_never_finish_are_an_error(scale):
    plan = free(scale, link_bytes_per_s=1e6, images=10, mtbf_s=0.01, restart_s=0.01)
    with pytest.raises(ValueError, match="larger mtbf_s or a smaller piece"):
        scale.simulate(plan)


def test_figures_come_from_results_of_bench(scale, tmp_path):
    local, remote, loop = tmp_path / "local", tmp_path / "remote", tmp_path / "loop"
    for folder in (local, remote, loop):
        folder.mkdir()
    (local / "dataloader.csv").write_text(
        "format,status,readers,limit_read_per_s\ntiff,ok,1,90\ntiff,ok,2,240\ntiff,ok,2,200\ntiff,unavailable,2,\n"
    )
    (remote / "dataloader.csv").write_text(
        "format,status,requests,link_bytes,num_samples,limit_link_per_s\n"
        "tiff,ok,20,4000,10,50\ntiff,ok,20,4000,10,60\n"
    )
    (loop / "loop.csv").write_text("format,status,batch_size,compute_p50_s\ntiff,ok,8,0.1\ntiff,ok,32,0.2\n")
    args = type("Args", (), {"local": local, "remote": remote, "loop": loop})
    assert scale.measured(args) == {
        "decode_per_s": 110.0, "requests_per_image": 2.0, "bytes_per_image": 400.0, "link_bytes_per_s": 24_000.0,
        "gpu_per_s": 160.0,
    }  # fmt: skip
    (loop / "loop.csv").write_text("format,status,batch_size,compute_p50_s\ntiff,ok,8,0.1\nlance,ok,8,0.2\n")
    with pytest.raises(ValueError, match=r"several formats \(lance, tiff\); measure one"):
        scale.measured(args)
    (remote / "dataloader.csv").write_text("format,status,num_samples\ntiff,ok,10\n")
    with pytest.raises(ValueError, match="no row has requests, link_bytes"):
        scale.measured(args)


def test_the_page_is_of_figures_that_were_measured_here(scale, tmp_path):
    def row(format, kept, read):
        return {"format": format, "kept": kept, "read": read}

    runs = [
        {"loader_requests": n, "loader_bytes_read_per_used": 0.5, "epochs": [{"images": 100}, {"images": 100}]}
        for n in (400, 500, 900)
    ]
    links = {"b": {"latencies": {"20": {"runs": {"wellread parquet": runs}}}}}
    compressed = [row("tiff", False, [1]), row("parquet", True, [2]), row("parquet", False, [600, 800, 700])]
    limits = [
        {"title": "not compressed", "side": 1080, "rows": [row("parquet", False, [5])]},
        {"title": "compressed (Zstandard 3)", "side": 1080, "rows": compressed},
    ]
    for name, document in (("remote-b", {"links": links}), ("speed", {"speed": {"limits": limits}})):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    plan = scale.page_plan(tmp_path)
    # Half of 1080 x 1080 x 2 bytes, 500 requests for 200 images, and 700 images of two threads.
    assert (plan.bytes_per_image, plan.requests_per_image, plan.decode_per_s) == (1_170_000.0, 2.5, 350.0)
    assert plan.images * plan.bytes_per_image == pytest.approx(1e15, rel=1e-6)
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    for name, (value, page) in scale.published().items():
        assert f"| `{name}` | {value:,.15g} | [measured]({page}) |" in text
    plan = scale.page_plan()
    below = plan.link_bytes_per_s / plan.bytes_per_image / plan.cores
    assert f"its cores would bind below {below:.0f} images per second of a core" in text


def test_parts_are_those_of_the_program(scale):
    """By their sources: this test needs no program."""
    convert = (ROOT / "python" / "wellread" / "ray" / "_convert.py").read_text(encoding="utf-8")
    assert "\nPART_BYTES = 256 << 20\n" in convert and scale.PART_BYTES == 256 << 20
    embed = (ROOT / "crates" / "wellread-cli" / "src" / "commands" / "embed.rs").read_text(encoding="utf-8")
    assert f"const PART_ROWS: usize = {scale.EMBEDDED};" in embed
    assert scale.PARTS == {"convert": 112, "embed": 4096}
    plans = {kind: scale.of_workload(scale.page_plan(), kind) for kind in ("convert", "embed", "train")}
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert (
        f"`convert` writes {plans['convert'].parts / 1e6:.1f} million parts of {plans['convert'].part} images" in text
    )
    assert f"`embed` has {plans['embed'].parts:,} parts of {plans['embed'].part:,}" in text
    # The model's driver sends out each of them.
    model = sys.modules[scale.Plan.__module__].costs(plans["convert"]).shared["driver"]
    assert model == pytest.approx(plans["convert"].dispatch_s / 112, rel=1e-6)


def test_the_page_has_the_tables_that_the_script_writes(scale):
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert scale.page(text) == text, "python benches/scale.py --write docs/scale.md"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--decode-per-s", "0"], "decode_per_s is 0.0"),
        (["--latency-s", "nan"], "latency_s is nan"),
        (["--workload", "sort"], "none of convert, embed, train"),
        (["--nodes", "0"], "nodes is 0"),
        (["--piece", "1"], "give a larger piece"),
        (["--local", "nowhere"], "nowhere"),
    ],
)
def test_choices_that_make_no_sense_are_refused(given, says):
    done = subprocess.run([sys.executable, str(SCRIPT), *given], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr and "Traceback" not in done.stderr
