"""Processes that train together, on this machine or on hosts of `hosts.py`, for tests."""

import json
import os
import subprocess
import sys
import threading

import pytest
from own_process import HANGS


def run_all(commands, folder, **more):
    """Runs processes that wait for each other, and returns what each has said."""
    # A process that a signal ends says where it was.
    own = {"OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "TMPDIR": str(folder), "PYTHONFAULTHANDLER": "1"}
    env = {**os.environ, **own, **more}
    pipe = subprocess.PIPE
    running = [
        subprocess.Popen([*map(str, command)], env=env, cwd=folder, text=True, stdout=pipe, stderr=subprocess.STDOUT)
        for command in commands
    ]
    said = [""] * len(running)

    def listen(i):
        said[i] = running[i].communicate()[0]

    listeners = [threading.Thread(target=listen, args=(i,)) for i in range(len(running))]
    try:
        for listener in listeners:
            listener.start()
        for listener in listeners:
            listener.join(HANGS)
    finally:
        for process in running:
            process.kill()
        for listener in listeners:
            listener.join()
    assert [process.returncode for process in running] == [0] * len(running), "\n".join(said)
    return said


def torchrun(folder, nodes, ranks, *script, on=None):
    """Runs a script on so many "nodes" of so many ranks, and returns what each rank has logged. `on` is the address
    of this process and the hosts that the nodes are, as of hosts.made()."""
    server, there = on or ("localhost", [])
    addresses = [host.address for host in there] or ["localhost"] * nodes
    log = folder / f"log{len(list(folder.iterdir()))}"
    log.mkdir()
    # The store of the rendezvous outlives both agents: whoever of them held it could end first, and the other would
    # wait for minutes at the barrier before its end.
    store = pytest.importorskip("torch.distributed").TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    commands = [
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nnodes", nodes, "--nproc-per-node", ranks),
            *("--node-rank", node, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{server}:{store.port}"),
            *("--rdzv-conf", "is_host=0"),
            *("--rdzv-id", "test", "--local-addr", addresses[node], *script, "--written-rows", log),
        ]
        for node in range(nodes)
    ]
    run_all([host.command(words) for host, words in zip(there, commands, strict=True)] if there else commands, folder)
    return [json.loads((log / f"{rank}.json").read_text()) for rank in range(nodes * ranks)]
