"""The Python side of `wellread bench --framework pytorch,jax` and `wellread infer`.

    wellread bench (Rust)                                worker (this package, one process per framework)
    makes the sets, orders the rounds ── JSON lines ──▶  worker.py ─▶ tracks/   what is timed
    statistics, tables, plots        ◀── raw samples ──               ├─ frameworks/  PyTorch, JAX
    compares every pixel             ◀── pixels ─────                 ├─ peers/       who reads the images
    wellread infer (Rust)            ── images, logits in shared memory ── inference/  forward passes

The program carries these sources in its binary and runs them with any Python >= 3.10, so nothing here may import
`wellread` except in `peers/own.py`. Libraries are imported when they are used: one that is missing makes rows that
say so and how to get it, and nothing else.

To add a peer: one file in `peers/` and one line in `peers.READERS`. To add a framework: one file in `frameworks/`
and one line in `frameworks.FRAMEWORKS`.
"""
