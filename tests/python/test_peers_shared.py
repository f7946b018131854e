"""Loaders of peers that run in torch's workers make batches in shared memory, so that sending them copies nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
CODE = """
import json, sys
sys.path[:0] = [f"{benches}/{{name}}" for name in ("peers", "plates", "remote")]
import numpy as np
import torch
from own_files import Scaled
from plate_sets import CHANNELS
from remote_loaders import Decoded

# A worker tells whether its batch is in shared memory before it is sent: sending puts others there, by a copy.
def told(collate, samples):
    rows, batch = collate(samples)
    return list(map(int, rows)), batch, batch.is_shared()

pixels = [np.full((CHANNELS, 2, 3), 65535 * row // 5, np.uint16) for row in range(6)]
job = dict(channels=CHANNELS, height=2, width=3, dtype="uint16")
plates = Scaled(2)
plates.shape = (CHANNELS, 2, 3)
ways = {{
    "plates": (plates, [dict(row=row, pixels=one) for row, one in enumerate(pixels)]),
    "remote": (Decoded(job), [dict(row=row, pixels=one.tobytes()) for row, one in enumerate(pixels)]),
}}
found = {{}}
for way, (collate, samples) in ways.items():
    for workers in (0, 2):
        loader = torch.utils.data.DataLoader(
            samples, 3, num_workers=workers, collate_fn=lambda some, collate=collate: told(collate, some),
            multiprocessing_context="fork" if workers else None,
        )
        for rows, batch, shared in loader:
            want = np.stack([pixels[row] for row in rows]) * np.float32(1 / 65535)
            assert batch.dtype == torch.float32 and np.array_equal(batch.numpy(), want), (way, workers, rows)
            found.setdefault(f"{{way}} {{workers}}", []).append([rows, shared])
print(json.dumps(found))
"""


def test_a_worker_s_batch_is_in_shared_memory_before_it_is_sent():
    pytest.importorskip("torch")
    code = CODE.format(benches=BENCHES)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for way in ("plates", "remote"):
        found = json.loads(done.stdout)
        assert found[f"{way} 2"] == [[[0, 1, 2], True], [[3, 4, 5], True]]
        assert found[f"{way} 0"] == [[[0, 1, 2], False], [[3, 4, 5], False]]
