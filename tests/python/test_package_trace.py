"""Timelines from Python: `wellread.trace` and `wellread.step`."""

import json
from itertools import pairwise

import pytest
import wellread as wr


def spans(path):
    document = json.loads(path.read_text())
    events = document["traceEvents"]
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    return [(threads[e["tid"]], e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"], document[
        "otherData"
    ]


def test_a_loader_and_the_callers_steps_are_recorded(tmp_path, parquet):
    path = tmp_path / "trace.json"
    loader = wr.DataLoader(wr.Dataset(parquet), batch_size=4, num_workers=2, as_="numpy")
    with wr.trace(path) as recording:
        for batch in loader:
            with wr.step("train"):
                batch.sum()
    found, about = spans(path)
    assert recording.spans == len(found) and recording.dropped == 0 and about["dropped_events"] == "0"
    of = {name: [s for s in found if s[1] == name] for name in ("batch", "train", "read")}
    assert len(of["batch"]) >= 10 and len(of["train"]) == 10 and of["read"]
    # The consumer does one after the other.
    assert {s[0] for s in of["train"]} <= {s[0] for s in of["batch"]}
    ordered = sorted((*of["batch"], *of["train"]), key=lambda s: s[2])
    assert all(a[2] + a[3] <= b[2] + 1e-3 for a, b in pairwise(ordered))


def test_the_file_is_written_when_the_block_fails(tmp_path, parquet):
    path = tmp_path / "trace.json"
    with pytest.raises(ZeroDivisionError), wr.trace(path):
        wr.Dataset(parquet)[3]
        raise ZeroDivisionError
    assert "open" in [name for _, name, *_ in spans(path)[0]]
    with wr.trace(path), wr.step("again"):
        pass
    assert [name for _, name, *_ in spans(path)[0]] == ["again"]


def test_what_cannot_be_recorded_is_refused(tmp_path):
    other = tmp_path / "notes.json"
    other.write_text("{}")
    with pytest.raises(wr.Error, match="is no trace"), wr.trace(other):
        pass
    assert other.read_text() == "{}"
    first, second = wr.trace(tmp_path / "a.json"), wr.trace(tmp_path / "b.json")
    with first, pytest.raises(wr.Error, match="already"), second:
        pass
    assert (tmp_path / "a.json").exists() and not (tmp_path / "b.json").exists()
    with wr.step("without a recording"):
        pass
