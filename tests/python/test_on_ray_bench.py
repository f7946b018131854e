"""The comparison on a Ray cluster (`make bench-ray`): what its tables may say. No cluster is started."""

import importlib.util
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
NAMES = ("judge", "job_process", "page", "ray_loaders", "ray_sets", "worker_memory")


@pytest.fixture(scope="module")
def bench():
    """The script, and the modules beside it, whose names are for it only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        spec = importlib.util.spec_from_file_location("on_ray", BENCHES / "on_ray.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
        for name in NAMES:
            sys.modules.pop(name, None)


def runs(seconds, rounds=6):
    """Runs whose first pass takes twice as long as the later one; a round is slower than the one before."""
    return [{"round": i, "passes_s": [2 * s, s]} for i in range(1, rounds + 1) for s in [seconds * (1 + i / 100)]]


def found(rounds=6):
    """Two readers: Ray Data's takes eight times as long."""
    of = {
        "wellread parquet": runs(0.5, rounds),
        "wellread parquet, again": runs(0.501, rounds),
        "read_images (PNG)": runs(4.0, rounds),
        "tifffile": [{"round": 1, "error": "no such file"}],
    }
    return {"kind": {"images": 100, "about": "100 images", "goal": 5}, "runs": of}


def test_a_reader_is_compared_with_wellreads_in_the_same_rounds(bench):
    lines = dict(line.strip("| ").split(" | ", 1) for line in bench.read_table(found(), 2)[2:])
    assert lines["wellread parquet"].startswith("48 (47–50) | 97 (94–99)")
    peer = lines["read_images (PNG)"]
    assert "8.00 (8.00–8.00) times as fast (wellread parquet) | 5" in peer and "no verdict" not in peer
    assert lines["tifffile"].startswith("no such file")


def test_fewer_than_six_rounds_are_no_verdict(bench):
    text = "\n".join(bench.read_table(found(rounds=5), 2))
    assert "8.00 times as fast (wellread parquet); no verdict: 5 of the 6 rounds that a verdict needs" in text


def test_overhead_is_of_pairs_and_what_failed_is_said(bench):
    one, other = runs(1.0), runs(1.1)
    of = {
        "convert, one process": one,
        "convert, ray": other,
        "stats, one process": one,
        "stats, ray": [{"round": 2, "error": "no cluster"}],
    }
    convert, stats = bench.command_table(of)[2:]
    assert "| 10% (10% to 10%) | at most 15% |" in convert
    assert "no cluster" in stats


def test_the_memory_of_a_worker_stands_beside_its_bound(bench):
    of = found()
    of["runs"]["wellread parquet"][0]["worker_bytes"] = 300_000_000
    of["runs"]["read_images (PNG)"][0]["worker_bytes"] = 900_000_000
    lines = dict(line.strip("| ").split(" | ", 1) for line in bench.read_table(of, 2)[2:])
    assert lines["wellread parquet"].endswith("| 300 (at most 537)")
    assert lines["read_images (PNG)"].endswith("| 5 | 900")


def test_memory_is_that_of_the_worker_that_holds_most(bench, tmp_path):
    import worker_memory

    processes = {
        "1": (b"ray::reads\0", 100), "2": (b"ray::wellread.part_task\0", 300), "3": (b"python\0ray::\0", 900),
        "self": (b"ray::x\0", 900), "5": (b"ray::DashboardAgent   ", 900),
        # Left by the job before.
        "6": (b"ray::IDLE\0", 900),
    }  # fmt: skip
    for name, (line, kilobytes) in processes.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "cmdline").write_bytes(line)
        (tmp_path / name / "status").write_text(f"VmRSS:\t5000 kB\nRssAnon:\t{kilobytes} kB\n")
    # One that has ended.
    (tmp_path / "4").mkdir()
    assert worker_memory.held(tmp_path) == 300 << 10


def test_every_peer_is_compared_with_a_reader_of_ours(bench):
    import ray_loaders

    assert set(ray_loaders.COMPARED.values()) <= set(ray_loaders.LOADERS)
    ours = {name for name in ray_loaders.LOADERS if name.startswith("wellread")}
    assert set(ray_loaders.COMPARED) == set(ray_loaders.LOADERS) - ours


def test_choices_are_lists_of_what_is_known(bench):
    a = bench.arguments(["--only", "commands", "--kinds", "none"])
    assert (a.only, a.kinds) == (["commands"], [])
    with pytest.raises(SystemExit) as unknown:
        bench.arguments(["--kinds", "small,huge"])
    assert unknown.value.code == 2


def test_the_answer_to_a_job_is_alone_on_standard_output(bench, capsys, monkeypatch):
    def work(job):
        print("a library greets")
        return {"images": job["images"] + 1}

    monkeypatch.setattr(bench, "run_job", work)
    monkeypatch.setattr(sys, "argv", ["on_ray.py", "--job", '{"images": 2}'])
    bench.main()
    said = capsys.readouterr()
    assert (said.out, said.err) == ('{"images": 3}\n', "a library greets\n")


def test_a_variant_that_fails_is_left_out_from_then_on(bench):
    asked = []

    def once(name, round_):
        asked.append((round_, name))
        return {"error": "broken"} if name == "b" and round_ == 1 else {"passes_s": [1.0]}

    a = bench.arguments(["--rounds", "3"])
    of = bench.rounds(a, {"a": 0, "b": 0}, once)
    assert [run["round"] for run in of["a"]] == [1, 2, 3] and of["b"] == [{"round": 1, "error": "broken"}]
    # The first round is not measured, and the order turns.
    assert asked == [(0, "a"), (0, "b"), (1, "b"), (1, "a"), (2, "a"), (3, "a")]
