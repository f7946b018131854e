"""Kills on a cluster: nodes end while a Ray cluster works, and what comes of it is compared with one machine.

    cluster: a head and nodes ──▶ command ──progress reaches a moment of the seed──▶ a node is killed
                                     └──▶ what came of it == what one machine writes, to the byte

    make campaign ends with this; or
    python fuzz/ray_kills.py --seeds 20 --command convert,verify,stats,embed,resume --out results/ray-kills

convert   a node is killed when so many images are written. All files of TIFF and OME-Zarr are compared, by turns; a
          folder of Parquet with that of an undisturbed run.
verify    … when so many images are read, of a whole set and of a damaged one, by turns: the document.
stats     … of uint16 and of float32, by turns: the file of statistics.
embed     … when so many parts are whole: the table.
resume    the driver is killed and the same command goes on, by turns of convert when so many parts are written (all
          files), and of stats when so many answers of nodes are kept (the file of statistics).

Long because each command is killed in a way of its own.

The seed chooses the node and the moment, which is counted in images or parts: no seed depends on time. A line is
printed for each seed. The exit code is 1 where a result differs, something is left behind, or a command fails or
hangs.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests" / "python")]

IMAGES = 60
PART_ROWS = 4
PARTS = IMAGES // PART_ROWS
# Of convert by the command, whose parts have 16 images at least.
RESUMED_PARTS = -(-IMAGES // 16)
COMMANDS = ("convert", "verify", "stats", "embed", "resume")
FORMATS = ("tiff", "ome-zarr", "parquet")
# What a model waits for: that the node is gone which the campaign kills at this number of parts.
GATE = "WELLREAD_KILLS_GATE"
MODEL = """
    import json, os, pathlib, time
    import numpy as np

    def means(batch):
        gate = os.environ.get("WELLREAD_KILLS_GATE")
        if gate:
            gate = json.loads(gate)
            parts, folder = pathlib.Path(gate["parts"]), pathlib.Path(gate["folder"])
            if len(list(parts.glob("part-*.parquet"))) >= gate["at"]:
                (folder / "reached").touch()
                while not (folder / "killed").exists():
                    time.sleep(0.01)
        return batch.mean((2, 3), dtype=np.float64)
"""


@dataclass(frozen=True)
class Moment:
    """What a seed chooses."""

    node: int
    """Of the nodes that may be killed."""
    at: int
    """So much is done when it is."""
    of: int
    kind: int
    """Which of the sets or formats."""


def moment(command, seed, nodes):
    """The choices of a seed."""
    chance = random.Random(f"{command} {seed}")
    of, in_work = {
        "convert": (IMAGES, PART_ROWS),
        "verify": (2 * IMAGES, PART_ROWS),
        "stats": (IMAGES, PART_ROWS),
        # Each actor has a part that it may have looked at the gate for before: one more is begun then.
        "embed": (PARTS, nodes + 2),
        "resume": (RESUMED_PARTS, 1),
    }[command]
    return Moment(chance.randrange(nodes), chance.randrange(of - in_work), of, seed)


def digests(path):
    """The files below a folder, or the file, by what is in them."""
    path = Path(path)
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def difference(one, other):
    """In what two results differ, in a few words; None where they do not."""
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        return f"{len(names)} of {len(one.keys() | other.keys())} differ: {', '.join(names[:3])}"
    return "they differ"


def kill_session(leader):
    """Kills a process that leads a session, and all of it: what it starts may be in a group of its own."""
    for name in os.listdir("/proc"):
        with contextlib.suppress(ValueError, ProcessLookupError, PermissionError):
            if os.getsid(int(name)) == leader:
                os.kill(int(name), signal.SIGKILL)


class Hangs(Exception):
    """A seed that does not end."""


@contextlib.contextmanager
def patience(seconds):
    """Raises in the block when it takes longer; of no use outside of the main thread."""

    def raise_it(*_):
        raise Hangs(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, raise_it)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Campaign:
    """Sets in a folder, what one machine makes of them, and a cluster, to which this process is connected."""

    def __init__(self, cluster, node_arguments, folder, wellread, nodes=3):
        self.cluster, self.node_arguments, self.folder, self.wellread = cluster, node_arguments, folder, wellread
        self.count, self.nodes = nodes, []
        self.environment = {**os.environ, "WELLREAD_PYTHON": sys.executable}
        modules = folder / "modules"
        modules.mkdir()
        (modules / "models_of_kills.py").write_text(textwrap.dedent(MODEL))
        paths = [str(modules), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment["PYTHONPATH"] = os.pathsep.join(paths)
        self.expected = {}

    def run(self, *words, code=0, **environment):
        """The program's document."""
        done = subprocess.run(
            [self.wellread, "--json", *map(str, words)],
            capture_output=True,
            text=True,
            env={**self.environment, **environment},
        )
        if done.returncode != code:
            raise RuntimeError(f"{words[0]}: exit {done.returncode}: {done.stderr.strip()[-500:]}")
        return json.loads(done.stdout)

    def prepare(self):
        """Writes the sets, and what one machine makes of them."""
        for name, dtype in (("whole", "uint16"), ("floats", "float32")):
            words = ["--images", IMAGES, "--size", "48x56", "--channels", 2, "--dtype", dtype, "--formats", "parquet"]
            [written] = self.run("generate", self.folder / name, *words)["written"]
            setattr(self, name, written["path"])
        self.run("convert", self.whole, self.folder / "tiff", "--format", "tiff")
        self.run("convert", self.whole, self.folder / "damaged", "--format", "tiff")
        victim = sorted((self.folder / "damaged").glob("*.tiff"))[17]
        victim.write_bytes(victim.read_bytes()[:200])
        self.run("convert", self.whole, self.folder / "ome-zarr", "--format", "ome-zarr")
        self.fill()

    def fill(self):
        """Starts nodes until as many are there as may be killed."""
        while len(self.nodes) < self.count:
            self.nodes.append(self.cluster.add_node(**self.node_arguments))
        # Ray takes a while to know that a node is gone.
        self.cluster.wait_for_nodes(timeout=600)

    def once(self, key, make):
        """What was made under this key before, or is made now."""
        if key not in self.expected:
            self.expected[key] = make()
        return self.expected[key]

    def kill(self, number):
        """Kills a node."""
        self.cluster.remove_node(self.nodes.pop(number), allow_graceful=False)

    @contextlib.contextmanager
    def killing(self, chosen):
        """Jobs of wellread.ray that are begun in the block kill a node when so many images are done; how often."""
        from wellread.ray import _convert, _whole

        real, done, killed = _whole.Job, [0], []

        def look(images=0):
            done[0] += images
            if not killed and done[0] >= chosen.at:
                killed.append(done[0])
                self.kill(chosen.node)

        def job(address, **how):
            return real(address, done=look, total=lambda _: look(), **how)

        _whole.Job = _convert.Job = job
        try:
            yield killed
        finally:
            _whole.Job = _convert.Job = real

    # What is done at each seed: what differs, or None; how often something was killed.

    def convert(self, chosen, out):
        from wellread import ray as wray

        format = FORMATS[chosen.kind % len(FORMATS)]
        name = "there.parquet" if format == "parquet" else "there"

        def to(target):
            wray.convert(self.whole, target, format=format, rows_per_part=PART_ROWS)
            return digests(target)

        def undisturbed():
            found = to(out / f"once-{name}")
            assert self.run("verify", out / f"once-{name}", "--against", self.whole)["passed"]
            return found

        # Parquet is a folder of parts, which one machine does not write; its images are compared.
        of_one = undisturbed if format == "parquet" else lambda: digests(self.folder / format)
        wanted = self.once(f"convert {format}", of_one)
        with self.killing(chosen) as killed:
            found = to(out / name)
        return difference(found, wanted), len(killed)

    def verify(self, chosen, out):
        from wellread import ray as wray

        path = str(self.folder / ("tiff", "damaged")[chosen.kind % 2])
        code = chosen.kind % 2
        wanted = self.once(f"verify {path}", lambda: self.run("verify", path, "--against", self.whole, code=code))
        with self.killing(chosen) as killed:
            found = wray.verify(path, self.whole)
        found.pop("cluster")
        return difference(found, wanted), len(killed)

    def stats_here(self, path, out):
        """The file of statistics that one machine writes."""

        def of_one():
            self.run("stats", path, "--out", out / "here.json")
            return (out / "here.json").read_bytes()

        return self.once(f"stats {path}", of_one)

    def stats(self, chosen, out):
        from wellread import ray as wray

        path = (self.whole, self.floats)[chosen.kind % 2]

        wanted = self.stats_here(path, out)
        with self.killing(chosen) as killed:
            wray.stats(path, out=out / "there.json")
        return difference((out / "there.json").read_bytes(), wanted), len(killed)

    def embed(self, chosen, out):
        table = out / "profiles.parquet"
        words = ["embed", self.whole, "--model", "python:models_of_kills:means", "--out", table, "--batch-size", 2,
                 "--part-rows", PART_ROWS, "--threads", 1, "--workers", 1, "--device-prefer", "cpu"]  # fmt: skip

        def of_one():
            self.run(*words)
            return table.read_bytes()

        # The table names itself, so that it is written at the same place.
        wanted = of_one()
        table.unlink()
        gate = {"parts": str(out / ".wellread-resume-profiles.parquet"), "folder": str(out), "at": chosen.at}
        killed, ended = [], threading.Event()

        def killer():
            while not (out / "reached").exists():
                if ended.wait(0.01):
                    return
            killed.append(1)
            self.kill(chosen.node)
            (out / "killed").touch()

        thread = threading.Thread(target=killer)
        thread.start()
        try:
            self.run(*words, "--on", f"ray:{self.cluster.address}", **{GATE: json.dumps(gate)})
        finally:
            ended.set()
            thread.join()
        for name in ("reached", "killed"):
            (out / name).unlink(missing_ok=True)
        return difference(table.read_bytes(), wanted), len(killed)

    def interrupted(self, words, is_time, **environment):
        """Runs the program until it is time to kill it and all that it started; how often it was killed."""
        pipe = subprocess.DEVNULL
        first = subprocess.Popen(
            list(map(str, [self.wellread, "--json", *words])),
            stdout=pipe,
            stderr=pipe,
            env={**self.environment, **environment},
            start_new_session=True,
        )
        killed = 0
        while first.poll() is None and not killed:
            if is_time():
                kill_session(first.pid)
                killed = 1
            time.sleep(0.005)
        first.wait()
        return killed

    def resume(self, chosen, out):
        return (self.resume_convert if chosen.kind % 2 else self.resume_stats)(chosen, out)

    def resume_stats(self, chosen, out):
        table, cache = out / "there.json", out / "cache"
        words = ["stats", self.floats, "--out", table, "--resume", "--on", f"ray:{self.cluster.address}"]

        def kept():
            return sum(path.read_bytes().count(b"\n") for path in cache.glob("wellread/resume/*"))

        def is_time():
            # A journal is there before its first answer.
            return any(cache.glob("wellread/resume/*")) and kept() >= chosen.at

        killed = self.interrupted(words, is_time, XDG_CACHE_HOME=str(cache))
        if table.exists():
            # It was done by then.
            killed = 0
        else:
            self.run(*words, XDG_CACHE_HOME=str(cache))
        left = "answers are still kept" if kept() else None
        return difference(table.read_bytes(), self.stats_here(self.floats, out)) or left, killed

    def resume_convert(self, chosen, out):
        target = out / "there"
        words = ["convert", self.whole, target, "--format", "tiff", "--resume", "--on", f"ray:{self.cluster.address}"]
        parts = out / ".wellread-resume-there" / "parts"

        def is_time():
            return parts.is_dir() and len([part for part in parts.iterdir() if part.name[0] != "."]) >= chosen.at

        killed = self.interrupted(words, is_time)
        if target.exists():
            # It was done by then.
            killed = 0
        else:
            self.run(*words)
        return difference(digests(target), digests(self.folder / "tiff")), killed

    def seed(self, command, seed, seconds):
        """What came of a seed."""
        chosen = moment(command, seed, self.count)
        with tempfile.TemporaryDirectory(dir=self.folder) as out:
            wrong, killed = None, 0
            try:
                with patience(seconds):
                    wrong, killed = getattr(self, command)(chosen, Path(out))
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            left = [path.name for path in Path(out).iterdir() if path.name.startswith(".")]
            if not killed and command != "resume" and wrong is None:
                wrong = "the moment did not come"
            if left and wrong is None:
                wrong = f"left behind: {', '.join(left)}"
        self.fill()
        return {"command": command, "seed": seed, "at": chosen.at, "of": chosen.of, "node": chosen.node,
                "killed": killed, "wrong": wrong}  # fmt: skip


def line(found):
    """A seed in a line."""
    what = "the driver" if found["command"] == "resume" else f"node {found['node']}"
    unit = "parts" if found["command"] in ("embed", "resume") else "images"
    when = f"{what} killed after {found['at']} of {found['of']} {unit}" if found["killed"] else "nothing was killed"
    came = "the same as one machine" if found["wrong"] is None else f"WRONG: {found['wrong']}"
    return f"{found['command']} seed {found['seed']}: {when}: {came}"


def main(words=None):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--seeds", type=int, default=20, help="of each command (20)")
    ap.add_argument("--first", type=int, default=1, help="the first seed")
    ap.add_argument("--command", default=",".join(COMMANDS), help=f"of {','.join(COMMANDS)}")
    ap.add_argument("--nodes", type=int, default=3, help="that may be killed, beside the head (3)")
    ap.add_argument("--patience", type=int, default=900, help="seconds after which a seed hangs")
    ap.add_argument("--wellread", default=os.environ.get("WELLREAD", "wellread"))
    ap.add_argument("--out", type=Path, default=Path("results/ray-kills"))
    a = ap.parse_args(words)
    commands = a.command.split(",")
    unknown = [command for command in commands if command not in COMMANDS]
    if unknown:
        ap.error(f"--command: {', '.join(unknown)} is none of {', '.join(COMMANDS)}")
    import ray_cluster

    found = []
    with tempfile.TemporaryDirectory() as folder, ray_cluster.connected(nodes=0) as cluster:
        campaign = Campaign(cluster, ray_cluster.NODE, Path(folder), a.wellread, a.nodes)
        campaign.prepare()
        for command in commands:
            for seed in range(a.first, a.first + a.seeds):
                found.append(campaign.seed(command, seed, a.patience))
                print(line(found[-1]), flush=True)
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "ray-kills.json").write_text(json.dumps({"nodes": a.nodes, "images": IMAGES, "seeds": found}, indent=1))
    wrong = 0
    for command in commands:
        those = [one for one in found if one["command"] == command]
        bad = sum(one["wrong"] is not None for one in those)
        killed = sum(one["killed"] for one in those)
        print(f"{command}: {len(those)} seeds, {killed} kills, {bad} wrong")
        wrong += bad
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
