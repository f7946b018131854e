"""The mutation campaign: sets of every format damaged by seed, read by the program and by the libraries of reference.

    set ──damage by seed──▶ process: wellread checksum ──▶ same | error | other | crash | hang | memory
                       └──▶ tifffile, zarr, pyarrow ─────▶ same | error | other

The program reads each damaged set in a process of its own, so that a signal, a hang or memory is an outcome like any
other. A library reads in a fork of this process, because some of them crash on such files too. Then conversions are
killed at random moments, and a process that has used loaders forks children that drop them.

    make campaign N=27000 SEED=1          # or
    python fuzz/campaign.py --wellread target/release/wellread --n 300 --seed 1 --out results/campaign

The same seed gives the same damage. The table, `campaign.json` and each set that gave other pixels, crashed, hung or
took memory lie in the output folder. The exit code is 1 where something crashed, hung or took memory, or where more
than one in a hundred pieces of damage to a set with checksums gave other pixels without an error.

Long because damage, the readers and their outcomes are one program.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

# Seconds after which a read hangs: it takes hundredths of one.
HANGS = 120
# Bytes of resident memory that reading a set of less than a megabyte may take above what a good one takes.
MEMORY = 512 << 20
# Address space of a process, for what asks for memory without end.
ADDRESSES = 64 << 30
# Damage to a set with checksums that may give other pixels without an error.
ALLOWED = 0.01
# Pieces of damage of the long campaign: 600 and more to each kind of set.
LONG = 27_000

OUTCOMES = ("same", "error", "other", "crash", "hang", "memory")
BAD = ("crash", "hang", "memory")
# Formats of which an interrupted conversion is gone on with.
RESUMES = {"tiff", "ome-zarr", "image-folder", "lance", "duckdb"}


@dataclass
class Way:
    """How a set is written, and whether what is written has checksums of everything."""

    format: str
    target: str
    options: tuple = ()
    checked: bool = True

    @property
    def name(self):
        return " ".join([self.format, *self.options])


def ways():
    def of(format, target, codecs, *more, checked=True):
        return [Way(format, target, ("--compression", codec, *more), checked) for codec in codecs]

    tiff = ("none", "lzw", "packbits", "deflate", "zstd")
    parquet = ("none", "lz4", "snappy", "deflate", "zstd")
    zarr = ("none", "lz4", "deflate", "zstd")
    return [
        *of("tiff", "set", tiff),
        *of("tiff", "set.tif", tiff, "--chunk", "1,1,1,16,32"),
        *of("tiff", "set", ("none", "zstd"), "--variant", "plain"),
        *of("parquet", "set.parquet", parquet),
        *of("parquet", "set.parquet", ("zstd",), "--tune", "reference"),
        *of("ome-arrow-dataset", "set", ("none", "zstd")),
        *of("ome-zarr", "set", zarr),
        *of("ome-zarr", "set", ("none", "zstd"), "--chunk", "1,1,1,16,32", "--shard", "1,1,1,64,64"),
        *of("ome-zarr", "set", ("deflate", "zstd"), "--variant", "0.4"),
        # Zarr 2 has no codec of checksums.
        *of("ome-zarr", "set", ("none", "lz4"), "--variant", "0.4", checked=False),
        Way("image-folder", "set"),
        # What engines write has the checksums that engines give it.
        *of("duckdb", "set.duckdb", ("default",)),
        *of("parquet-duckdb", "set.parquet", ("none", "zstd"), checked=False),
        *of("lance", "set.lance", ("none", "zstd"), checked=False),
        *of("vortex", "set.vortex", ("none", "zstd"), checked=False),
        # Without checksums, to show what they find.
        *of("tiff", "set", ("none", "zstd"), "--no-checksums", checked=False),
        *of("parquet", "set.parquet", ("none", "zstd"), "--no-checksums", checked=False),
        *of("ome-zarr", "set", ("none", "zstd"), "--no-checksums", checked=False),
    ]


# Damage -------------------------------------------------------------------------------------------------------------


def damage(good, chance):
    """A damaged copy of some bytes and the kind of damage; half of all is single bits, as it is on disks."""
    kinds = ("bit", "byte", "bytes", "cut", "taken out", "put in", "changed over", "written twice", "zeros")
    kind = "bit" if chance.random() < 0.5 else chance.choice(kinds)
    for _ in range(20):
        bytes_ = bytearray(good)
        at = chance.randrange(len(good))
        n = min(1 + chance.randrange(1 << chance.randrange(min(len(good).bit_length(), 13))), len(good) - at)
        other = chance.randrange(len(good) - n + 1)
        match kind:
            case "bit":
                bytes_[at] ^= 1 << chance.randrange(8)
            case "byte":
                bytes_[at] = chance.randrange(256)
            case "bytes":
                bytes_[at : at + n] = chance.randbytes(n)
            case "cut":
                del bytes_[at:]
            case "taken out":
                del bytes_[at : at + n]
            case "put in":
                bytes_[at:at] = chance.randbytes(n)
            case "changed over":
                bytes_[at : at + n], bytes_[other : other + n] = good[other : other + n], good[at : at + n]
            case "written twice":
                bytes_[other : other + n] = good[at : at + n]
            case _:
                bytes_[at : at + n] = bytes(n)
        if bytes_ != good:
            break
    return bytes(bytes_), kind


# Reading ------------------------------------------------------------------------------------------------------------


@dataclass
class Read:
    """What came of reading: an outcome, or images; what was said; memory."""

    outcome: str | None
    images: list | None = None
    said: str = ""
    memory: int = 0


def run(command, limit=HANGS, out=None):
    """Runs a process; exit code (negative: signal; None: it hung), output, what it said, its largest memory."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=said,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES)),
        )
        end = time.monotonic() + limit
        pause = 0.001
        while True:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                process.kill()
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = status
                return None, b"", "", used.ru_maxrss << 10
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said.seek(0)
        return process.returncode, output.read(), said.read().decode(errors="replace"), used.ru_maxrss << 10


def wellread(binary, way, path):
    code, out, said, memory = run([binary, "checksum", str(path), "--read-as", way.format, "--json", "--jobs", "1"])
    if code is None:
        return Read("hang", memory=memory)
    if code < 0 or "panicked" in said or code not in (0, 1, 2):
        return Read("crash", said=f"exit {code}: {said}", memory=memory)
    if code:
        return Read("error", said=said, memory=memory)
    sums = json.loads(out)
    return Read(None, [[s["shape_tczyx"], s["dtype"], s["sha256"]] for s in sums], said, memory)


def sha(array):
    return [list(array.shape), array.dtype.name, hashlib.sha256(array.tobytes()).hexdigest()]


def with_tifffile(path):
    import tifffile

    files = sorted(path.rglob("*.tif*")) if path.is_dir() else [path]
    found = []
    for file in files:
        with tifffile.TiffFile(file) as tiff:
            found += [sha(series.asarray()) for series in tiff.series]
    return found


def with_zarr(path):
    import zarr

    return [sha(zarr.open_array(str(image / "0"), mode="r")[:]) for image in sorted(path.iterdir()) if image.is_dir()]


def with_pyarrow(path):
    import pyarrow.parquet

    # Of a dataset the pixels alone: the other tables say where they belong.
    file = path / "chunks.parquet" if path.is_dir() else path
    table = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True).read()
    return [hashlib.sha256(repr(table.to_pydict()).encode()).hexdigest()]


REFERENCES = {
    "tiff": ("tifffile", with_tifffile),
    "ome-zarr": ("zarr", with_zarr),
    "parquet": ("pyarrow", with_pyarrow),
    "ome-arrow-dataset": ("pyarrow", with_pyarrow),
}


def reference(read, path):
    """What a library finds, asked in a fork of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # Nothing of what a library says, does or leaves behind is this process's.
        with contextlib.suppress(BaseException):
            os.close(reading)
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
            warnings.simplefilter("ignore")
            try:
                answer = json.dumps(read(path))
            except MemoryError:
                answer = '"memory"'
            except Exception:
                answer = '"error"'
            os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    answer = b""
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        end = time.monotonic() + HANGS
        while select.select([pipe], [], [], max(0, end - time.monotonic()))[0] and (more := pipe.read(1 << 16)):
            answer += more
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not answer:
        return Read("crash" if time.monotonic() < end else "hang", said=f"status {status}")
    found = json.loads(answer)
    return Read(found) if isinstance(found, str) else Read(None, found)


def preload():
    """Imports the libraries before anything forks, and says which are there."""
    there = set()
    for module in ("tifffile", "zarr", "pyarrow.parquet", "numpy"):
        with contextlib.suppress(ImportError):
            __import__(module)
            there.add(module.split(".")[0])
    return there


# The campaign -------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """What came of the damage to one set."""

    way: Way
    read: dict = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    reference: dict = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    # The program gave other pixels, the library an error; the program an error, the library the same pixels.
    missed: int = 0
    stricter: int = 0
    kept: list = field(default_factory=list)

    @property
    def tried(self):
        return sum(self.read.values())

    def faults(self):
        bad = {outcome: self.read[outcome] for outcome in BAD if self.read[outcome]}
        # Fewer than a hundred pieces of damage tell nothing: they are judged with those of all sets.
        if self.way.checked and self.tried >= 100 and self.read["other"] > ALLOWED * self.tried:
            bad["other"] = self.read["other"]
        return bad


def faults_of(rows):
    """What went wrong, by set and in all sets with checksums together."""
    faults = {f"{row.way.name} {row.way.target}": row.faults() for row in rows if row.faults()}
    checked = [row for row in rows if row.way.checked]
    other = sum(row.read["other"] for row in checked)
    if other > ALLOWED * sum(row.tried for row in checked):
        faults["all sets with checksums"] = {"other": other}
    return faults


def files_of(path):
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


class Campaign:
    def __init__(self, arguments):
        self.binary = str(Path(arguments.wellread).resolve())
        self.arguments = arguments
        self.out = Path(arguments.out)
        self.there = preload() if arguments.references else set()

    def call(self, *args, code=0):
        done = subprocess.run([self.binary, *map(str, args)], capture_output=True, text=True, timeout=3600)
        if done.returncode != code:
            raise SystemExit(f"{args}: exit {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout) if "--json" in args else done.stdout

    def formats(self):
        return {f["name"] for f in self.call("doctor", "--json", "--python", "no-such-python")["formats"]}

    def mutations(self, folder, source):
        """Damages a set of each kind; yields a row for each."""
        chosen = [way for way in ways() if way.format in self.formats() and self.wanted(way)]
        share = max(1, self.arguments.n // max(1, len(chosen)))
        end = time.monotonic() + self.arguments.seconds if self.arguments.seconds else None
        for number, way in enumerate(chosen):
            place = folder / f"set-{number}"
            place.mkdir()
            path = place / way.target
            self.call("convert", source, path, "--format", way.format, "--quiet", *way.options)
            yield self.damaged(Row(way), path, share, end and (end - time.monotonic()) / (len(chosen) - number))
            shutil.rmtree(place)

    def wanted(self, way):
        return not self.arguments.formats or way.format in self.arguments.formats

    def damaged(self, row, path, share, seconds):
        way = row.way
        good = wellread(self.binary, way, path)
        if good.images is None:
            raise SystemExit(f"{way.name}: a good set cannot be read: {good.said}")
        library, read = REFERENCES.get(way.format, ("", None))
        expected = reference(read, path) if library in self.there else None
        files = files_of(path)
        sizes = [file.stat().st_size for file in files]
        end = time.monotonic() + seconds if seconds else None
        for i in range(share):
            if end and time.monotonic() > end:
                break
            chance = random.Random(f"{self.arguments.seed} {way.name} {way.target} {i}")
            # By size: each byte of a set is as likely to be hit.
            (file,) = chance.choices(files, sizes)
            whole = file.read_bytes()
            bytes_, kind = damage(whole, chance)
            # A new file: who has the old one open keeps it.
            file.unlink()
            file.write_bytes(bytes_)
            found = wellread(self.binary, way, path)
            outcome = found.outcome or ("same" if found.images == good.images else "other")
            if outcome not in BAD and found.memory > good.memory + MEMORY:
                outcome = "memory"
            row.read[outcome] += 1
            if expected is not None and expected.images is not None:
                by_library = reference(read, path)
                said = by_library.outcome or ("same" if by_library.images == expected.images else "other")
                row.reference[said] += 1
                row.missed += outcome == "other" and said == "error"
                row.stricter += outcome == "error" and said == "same"
            if outcome in BAD or (outcome == "other" and way.checked):
                row.kept.append(self.keep(way, i, kind, outcome, path, file, found.said))
            file.unlink()
            file.write_bytes(whole)
        return row

    def keep(self, way, i, kind, outcome, path, file, said):
        """Copies a damaged set to the output folder."""
        label = "".join(c if c.isalnum() else "-" for c in f"{way.name}-{way.target}")
        target = self.out / "kept" / f"{label}-{self.arguments.seed}-{i}"
        target.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target / path.name, dirs_exist_ok=True)
        else:
            shutil.copy(path, target / path.name)
        note = {"set": str(target / path.name), "outcome": outcome, "damage": kind, "i": i, "said": said}
        note["file"] = str(file.relative_to(path)) if path.is_dir() else path.name
        (target / "note.json").write_text(json.dumps(note, indent=1))
        return note

    def kills(self, folder, source):
        """Conversions killed at random moments: nothing or a whole set is there, and the next run completes it."""
        rows = []
        for format in sorted(self.formats()):
            if self.arguments.formats and format not in self.arguments.formats:
                continue
            ending = {"tiff": "", "ome-zarr": "", "image-folder": "", "ome-arrow-dataset": ""}.get(
                format, f".{format}"
            )
            whole = folder / f"whole-{format}{ending}"
            command = ["convert", str(source), "--format", format]
            began = time.monotonic()
            self.call(*command, whole)
            lasts = time.monotonic() - began
            expected = self.call("checksum", whole, "--read-as", format, "--json")
            chance = random.Random(f"{self.arguments.seed} {format}")
            place = folder / f"killed-{format}"
            place.mkdir()
            target = place / f"set{ending}"
            resumes = self.resumes(format, command, target)
            kills = seen = tries = 0
            # Of the time that it took; less where it has ended before the signal came.
            share = 1.0
            while kills < self.arguments.kills and tries < 30 * self.arguments.kills:
                tries += 1
                process = subprocess.Popen(
                    [self.binary, *command, str(target), *resumes],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                # Somewhere between its start and its end; where it has ended before, the set is whole.
                time.sleep(chance.random() * lasts * share)
                process.kill()
                killed = process.wait() == -signal.SIGKILL
                kills += killed
                share *= 1.0 if killed else 0.5
                visible = [p for p in place.iterdir() if not p.name.startswith(".wellread-")]
                if visible:
                    seen += 1
                    if (
                        visible != [target]
                        or self.call("checksum", target, "--read-as", format, "--json") != expected
                    ):
                        raise SystemExit(f"{format}: a killed conversion left a set that is not whole: {visible}")
                    shutil.rmtree(target) if target.is_dir() else target.unlink()
            if kills < self.arguments.kills:
                raise SystemExit(f"{format}: of {tries} conversions {kills} could be killed before they had ended")
            self.call(*command, target, *resumes)
            if self.call("checksum", target, "--read-as", format, "--json") != expected:
                raise SystemExit(f"{format}: what was gone on with differs from what was written at once")
            rows.append({"format": format, "killed": kills, "whole": seen, "resumes": bool(resumes)})
        return rows

    def resumes(self, format, command, target):
        """The option that goes on with a conversion, or nothing where the format has none; all else is a fault."""
        command = [self.binary, *command, str(target), "--resume"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
        is_refused = done.returncode == 2 and f"{format} cannot be resumed" in done.stderr
        if is_refused == (format in RESUMES) or done.returncode and not is_refused:
            raise SystemExit(f"{format}: --resume ends with {done.returncode}: {done.stderr}")
        if is_refused:
            return []
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        return ["--resume"]

    def fork(self, source):
        """A process that has used loaders forks; its children's exit codes. None where the package is not there."""
        code, out, said, _ = run([sys.executable, "-c", FORKS, str(source)], limit=3600)
        if code == 3:
            return None
        children = json.loads(out) if code == 0 else {}
        if not children or any(any(codes) for codes in children.values()):
            raise SystemExit(f"a process that forks with loaders ends with {code}, its children: {children or said}")
        return children


# In Python, as users do it. Twelve loaders are used until their epochs end, and so do their threads. Then twenty
# children drop them. Then the same in the middle of epochs, with batches that are held; those children read too.
FORKS = """
import gc, json, os, signal, sys, time
try:
    import wellread
except ImportError:
    sys.exit(3)

def reading():
    count = 0
    for task in os.listdir("/proc/self/task"):
        try:
            count += open(f"/proc/self/task/{task}/comm").read().startswith("wellread-")
        except OSError:
            pass
    return count

def in_children(work):
    codes = []
    for _ in range(20):
        child = os.fork()
        if child == 0:
            # One that hangs is ended.
            signal.alarm(600)
            code = 4
            try:
                code = work()
            finally:
                os._exit(code)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return codes

def drop():
    global loaders, ended
    del ended, loaders
    gc.collect()
    return 0

def read_and_drop():
    global loaders, ended, epochs, held
    whole = sum(1 for _ in loaders[0]) == len(loaders[0])
    del held, epochs, ended, loaders
    gc.collect()
    return 0 if whole else 5

loaders = [wellread.DataLoader(sys.argv[1], batch_size=2, shuffle=True, seed=i, num_workers=2) for i in range(12)]
ended = [iter(loader) for loader in loaders]
assert all(sum(1 for _ in epoch) == len(loader) > 0 for loader, epoch in zip(loaders, ended))
end = time.monotonic() + 600
while reading():
    assert time.monotonic() < end, "threads of loaders that nobody uses do not end"
    time.sleep(0.05)
children = {"idle": in_children(drop)}
epochs = [iter(loader) for loader in loaders]
held = [next(epoch) for epoch in epochs]
children["in an epoch"] = in_children(read_and_drop)
drop()
print(json.dumps(children))
"""


def table(rows):
    lines = [f"{'set':<58}{'tried':>6}" + "".join(f"{o:>8}" for o in OUTCOMES) + "  library: same error other"]
    for row in rows:
        counts = "".join(f"{row.read[o]:>8}" for o in OUTCOMES)
        told = sum(row.reference.values())
        library = (
            f"  {row.reference['same']:>13} {row.reference['error']:>5} {row.reference['other']:>5}" if told else ""
        )
        mark = "" if row.way.checked else "*"
        lines.append(f"{row.way.name + ' ' + row.way.target + mark:<58}{row.tried:>6}{counts}{library}")
    return "\n".join([*lines, "* without checksums of its own: other pixels are no fault of the reader"])


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wellread", default=os.environ.get("WELLREAD") or "wellread", help="the program under test")
    parser.add_argument("--n", type=int, default=LONG, help="pieces of damage, shared by all kinds of sets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0, help="end about then, however many that were")
    parser.add_argument("--formats", type=lambda text: text.split(","), default=[], help="these alone")
    parser.add_argument("--kills", type=int, default=5, help="conversions killed, of each format")
    parser.add_argument("--no-fork", dest="forks", action="store_false", help="fork no process that has used loaders")
    parser.add_argument("--no-references", dest="references", action="store_false", help="ask no library")
    parser.add_argument("--out", default="results/campaign")
    campaign = Campaign(parser.parse_args(words))
    campaign.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
        folder = Path(folder)
        seed = str(campaign.arguments.seed)
        generated = ("--images", "3", "--size", "90x70", "--channels", "3", "--seed", seed, "--formats", "tiff")
        campaign.call("generate", folder / "source", *generated, "--quiet")
        rows = []
        for row in campaign.mutations(folder, folder / "source" / "tiff"):
            rows.append(row)
            print(f"{row.way.name} {row.way.target}: {row.read}", file=sys.stderr, flush=True)
        killed = []
        if campaign.arguments.kills:
            large = ("--images", "40", "--size", "256x256", "--formats", "tiff")
            campaign.call("generate", folder / "large", *large, "--quiet")
            killed = campaign.kills(folder, folder / "large" / "tiff")
        children = None
        if campaign.arguments.forks:
            many = ("--images", "40", "--size", "64x64", "--formats", "tiff")
            campaign.call("generate", folder / "many", *many, "--quiet")
            children = campaign.fork(folder / "many" / "tiff")
    document = {
        "wellread": campaign.call("--version").strip(),
        "seed": campaign.arguments.seed,
        "sets": [
            {
                "set": row.way.name, "target": row.way.target, "checksums": row.way.checked, "tried": row.tried,
                "wellread": row.read, "library": row.reference, "missed": row.missed, "stricter": row.stricter,
                "kept": row.kept,
            }
            for row in rows
        ],
        "killed": killed,
        "forked": children and True,
        "children": children,
    }  # fmt: skip
    (campaign.out / "campaign.json").write_text(json.dumps(document, indent=1))
    print(table(rows))
    print(f"killed: {killed}\nforked: {'well' if children else 'not tried'}")
    faults = faults_of(rows)
    if campaign.arguments.forks and children is None:
        faults["forked children"] = "not tried: there is no package wellread (--no-fork leaves them out)"
    if faults:
        print(f"faults: {faults}; see {campaign.out}/kept")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
