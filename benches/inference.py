"""Rust-native inference and ONNX Runtime beside PyTorch eager: medians over interleaved rounds, one machine, one run.

    cargo build --release -p wellread-model --features onnxruntime --example infer
    python inference.py --example target/release/examples/infer [--rounds 5] [--passes 20] [--threads 2]

Needs torch, torchvision, safetensors and, for its rows, onnxruntime. Each round runs every backend once, each in a
process of its own, in random order. A backend's figure is the median of its passes. The ratio is the median
over the rounds of the ratio to PyTorch in the same round. Logits of the same random images are compared too.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODELS = ["resnet50", "vit_b_16"]
BATCHES = [1, 4]
BACKENDS = ["pytorch", "candle", "onnxruntime"]


def pytorch(model, batch, threads, passes, folder):
    """Median seconds of PyTorch eager over the images in `folder`; leaves its logits there."""
    import numpy as np
    import torch
    import torchvision
    from safetensors.torch import load_file

    torch.set_num_threads(threads)
    network = getattr(torchvision.models, model)(weights=None).eval()
    network.load_state_dict(load_file(folder / f"{model}-seed0.safetensors"), strict=True)
    images = torch.from_numpy(np.fromfile(folder / "images.f32", "<f4").reshape(batch, 3, 224, 224))
    seconds = []
    with torch.inference_mode():
        for _ in range(passes + 3):
            start = time.perf_counter()
            logits = network(images)
            seconds.append(time.perf_counter() - start)
    logits.numpy().tofile(folder / "logits.f32")
    return statistics.median(seconds[3:])


def run(args, backend, model, batch, folder):
    """Median milliseconds of one backend in a process of its own, and its logits."""
    import numpy as np

    numbers = [str(batch), str(args.threads), str(args.passes)]
    if backend == "pytorch":
        command = [sys.executable, __file__, "--one", model, *numbers, folder]
    else:
        command = [args.example, model, *numbers, folder, backend]
    # The example asks `python3` for ONNX Runtime: this one.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": path})
    if done.returncode != 0:
        raise SystemExit(f"{backend} failed: {done.stderr}")
    return float(done.stdout.split()[0]), np.fromfile(folder / "logits.f32", "<f4")


def compare(args, model, batch, folder, rng):
    """One row per backend: milliseconds, ratio to PyTorch, largest difference from its logits."""
    import numpy as np

    images = np.random.default_rng(0).standard_normal((batch, 3, 224, 224), "f4")
    images.tofile(folder / "images.f32")
    times, logits = {backend: [] for backend in args.backends}, {}
    for _ in range(args.rounds):
        for backend in rng.sample(args.backends, len(args.backends)):
            milliseconds, logits[backend] = run(args, backend, model, batch, folder)
            times[backend].append(milliseconds)
    for backend in args.backends:
        ratios = [a / b for a, b in zip(times[backend], times["pytorch"], strict=True)]
        difference = np.abs(logits[backend] - logits["pytorch"]).max() / np.abs(logits["pytorch"]).max()
        yield {
            "model": model, "batch": batch, "backend": backend, "ms": statistics.median(times[backend]),
            "ratio": statistics.median(ratios), "ratio_low": min(ratios), "ratio_high": max(ratios),
            "difference": float(difference),
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--example", help="the example `infer` of wellread-model", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--backends", nargs="+", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--json", type=Path, help="where all rows go")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        model, batch, threads, passes, folder = args.one
        print(1e3 * pytorch(model, int(batch), int(threads), int(passes), Path(folder)), "ms")
        return
    if args.example is None or not args.example.is_file():
        parser.error("--example: build the example first, see above")
    if "pytorch" not in args.backends:
        parser.error("--backends: pytorch is what the others are compared with")
    rows, rng = [], random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for model in MODELS:
            # The example makes the weights; without images it takes some of its own.
            (folder / "images.f32").unlink(missing_ok=True)
            subprocess.run(
                [args.example, model, "1", str(args.threads), "1", folder], check=True, stdout=subprocess.DEVNULL
            )
            for batch in BATCHES:
                for row in compare(args, model, batch, folder, rng):
                    rows.append(row)
                    print(
                        "{model:9} x {batch}  {backend:12} {ms:8.1f} ms  {ratio:.2f} of PyTorch "
                        "({ratio_low:.2f}-{ratio_high:.2f}), logits differ by {difference:.1e}".format(**row),
                        flush=True,
                    )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
