"""The documentation: its commands and snippets run, what it names is there.

``docs_pages.py`` says how a page marks blocks that cannot run or are to run smaller; links are in ``test_links.py``.

Long because each thing that pages say and a program can compare has a test.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from docs_pages import FILES, OTHERS, ROOT, RUN, blocks, pages

DOCS = ROOT / "docs"
# A reason for not running a block has one of these words: hardware, own files, a build, hours, another test.
REASONS = re.compile(r"GPU|own|builds|minutes|hours|needs|installs|measured|test_gallery")
# A reason that names the file of another test, which runs the block.
ELSEWHERE = re.compile(r"^(tests/python/\w+\.py) runs ")


def name_of(page):
    return str(page.relative_to(ROOT))


ALL = [block for page in pages() for block in blocks(page)]
RUNNABLE = [page for page in pages() if any(b.language in RUN and b.not_run is None for b in blocks(page))]


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """The environment in which pages run: `wellread` and this Python on the path, caches of their own."""
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    assert binary, "set WELLREAD to the binary under test"
    folder = tmp_path_factory.mktemp("docs")
    bin = folder / "bin"
    bin.mkdir()
    (bin / "wellread").symlink_to(Path(binary).resolve())
    for name in ("python", "python3"):
        (bin / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        (bin / name).chmod(0o755)
    (folder / "cache").mkdir()
    return {
        **os.environ,
        "PATH": f"{bin}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(folder / "cache"),
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "100",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": "docs" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_every_block_runs(page, place, tmp_path):
    for name in ("examples", "recipes"):  # a reader works in the clone
        (tmp_path / name).symlink_to(ROOT / name)
    # Into a file, not a pipe: what a block has started and left would hold the pipe open.
    log = tmp_path / "log.txt"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, ROOT / "tests/python/docs_pages.py", page.relative_to(ROOT)],
            cwd=tmp_path, env=place, stdout=out, stderr=subprocess.STDOUT, preexec_fn=os.setpgrp,
        )  # fmt: skip
        try:
            # For what hangs: the longest page takes an idle machine minutes.
            code = process.wait(timeout=3600)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert code == 0, log.read_text()[-6000:]


def test_every_block_is_run_or_says_why_not():
    for block in ALL:
        known = block.language in (*RUN, *FILES, *OTHERS)
        assert known, f"{block.place}: say what this block is: {', '.join((*RUN, *FILES, *OTHERS))}"
        if block.language in FILES:
            assert block.file or block.not_run, f"{block.place}: <!-- file: NAME --> or <!-- not run: REASON -->"
        assert block.to_run  # what is made smaller is there


def test_reasons_for_not_running_are_reasons(capsys):
    left_out = [block for block in ALL if block.not_run is not None]
    for block in left_out:
        assert REASONS.search(block.not_run) and len(block.not_run) > 15, f"{block.place}: {block.not_run!r}"
    elsewhere = [(block, named[1]) for block in left_out if (named := ELSEWHERE.match(block.not_run))]
    for block, test in elsewhere:
        assert (ROOT / test).exists(), f"{block.place}: there is no {test}"
    smaller = [block for block in ALL if block.smaller]
    run = sum(b.language in RUN and b.not_run is None for b in ALL)
    with capsys.disabled():
        print(f"\n{run} blocks run, {len(smaller)} of them smaller; {len(left_out)} do not:")
        for block in left_out:
            print(f"  {block.place}: {block.not_run}")
    assert len(left_out) - len(elsewhere) <= run / 3, "no test runs too much of the documentation"


def texts(page):
    """The page without fenced blocks, which may hold anything."""
    return re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.S | re.M)


def test_every_page_is_in_the_summary_once():
    listed = re.findall(r"\]\(([^)]+)\)", (DOCS / "SUMMARY.md").read_text())
    there = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"SUMMARY.md"}
    assert sorted(listed) == sorted(there)


def test_pages_are_short():
    lines = {name_of(page): page.read_text().count("\n") for page in (ROOT / "README.md", *DOCS.rglob("*.md"))}
    long = sorted(f"{name}: {count} lines" for name, count in lines.items() if count > 200)
    assert long == [], "split them where that helps a reader"


def test_the_site_is_built_without_a_broken_link(site):
    folder, said = site
    assert "WARN" not in said, said
    built = [page for page in folder.rglob("*.html") if page.name not in ("print.html", "404.html", "toc.html")]
    assert len(built) >= 20
    for page in built:
        for link in re.findall(r'(?:href|src)="([^"#:]+)(?:#[^"]*)?"', page.read_text()):
            assert (page.parent / link).exists(), f"{page.relative_to(folder)}: {link}"


def pages_of_commands(docs):
    """The pages that scripts/command-reference.py writes, by their paths."""
    pages = [docs / "commands.md", *sorted((docs / "commands").glob("*"))]
    return {str(page.relative_to(docs)): page.read_text() for page in pages}


def test_commands_are_the_help_of_the_program(place, tmp_path):
    program = shutil.which("wellread", path=place["PATH"])
    subprocess.run([sys.executable, ROOT / "scripts/command-reference.py", program, tmp_path], check=True, env=place)
    there, said = pages_of_commands(DOCS), pages_of_commands(tmp_path)
    assert sorted(there) == sorted(said), "not the program's commands: make reference"
    stale = [name for name in said if there[name] != said[name]]
    assert stale == [], "not what the program says: make reference"


def test_support_is_what_was_tried(place):
    program = shutil.which("wellread", path=place["PATH"])
    command = [sys.executable, ROOT / "scripts/support-tables.py", program]
    environment = {"WELLREAD_DUCKDB": sys.executable, **place}
    said = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert said.returncode == 0, said.stderr
    assert (DOCS / "support.md").read_text() == said.stdout, "not what the program does: make reference"


def spans(text):
    return re.findall(r"`([^`]+)`", text)


def options(command):
    """The options that the pages in docs/commands, which are checked above, list for a command."""
    page = DOCS / "commands" / f"{command}.md"
    assert page.is_file(), f"no command {command}"
    text = page.read_text()
    parts = [text]
    # Groups of options that stand on another page.
    for name, anchor in re.findall(r"\]\(([a-z-]+-options\.md)#([a-z-]+)\)", text):
        sections = re.split(r"^## ", (page.parent / name).read_text(), flags=re.M)[1:]
        of = {re.sub(r"[^\w\- ]", "", part.split("\n")[0].lower()).replace(" ", "-"): part for part in sections}
        parts.append(of[anchor])
    return set(re.findall(r"(--[a-z][a-z-]*)", "\n".join(parts)))


def test_options_are_found_on_every_page_of_a_command():
    assert {"--time-budget", "--random-images", "--cells", "--in-flight"} <= options("bench")
    assert "--cells" not in options("tasks") and "--in-flight" in options("tasks")


def lines_of_upstream():
    """The lines of the tables that follow the documents, of both pages."""
    text = "\n".join((DOCS / name).read_text() for name in ("upstream.md", "upstream-models.md"))
    return [line for line in text.splitlines() if line.startswith("| ")]


def has_test(path, name):
    """Whether a file has a test of this name, and not another function."""
    if not path.is_file():
        return False
    if path.suffix == ".py":
        return name.startswith("test_") and bool(re.search(rf"^ *def {re.escape(name)}\(", path.read_text(), re.M))
    # Attributes and comments may stand between.
    between = r"(?:[ \t]*(?:#\[.*\]|//.*)\n)*"
    return bool(re.search(rf"#\[test\]\n{between}[ \t]*fn {re.escape(name)}\(", path.read_text()))


def test_a_function_is_no_test(tmp_path):
    rust, python = tmp_path / "a.rs", tmp_path / "test_a.py"
    rust.write_text(
        "/// Helps.\nfn helper() {}\n\n#[test]\n#[cfg(unix)]\n// Said.\nfn is_one() {}\n\nfn other() {}\n"
        "mod inner {\n    #[test]\n    fn within() {}\n}\n// fn spoken() is in a comment\n"
    )
    assert [name for name in ("helper", "is_one", "other", "within", "spoken") if has_test(rust, name)] == [
        "is_one",
        "within",
    ]
    python.write_text("def helper():\n    pass\n\n\ndef test_it(given):\n    test_other()\n\n\n# def test_not(\n")
    assert [name for name in ("helper", "test_it", "test_other", "test_not") if has_test(python, name)] == ["test_it"]
    assert not has_test(tmp_path / "none.rs", "is_one")


def test_upstream_names_what_there_is():
    wellread = pytest.importorskip("wellread")
    rows = lines_of_upstream()
    lines = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
    lines = [line for line in lines if line[0] != "upstream"]
    assert len(lines) > 150
    wrong, checked = [], dict.fromkeys(("path", "test", "command", "attribute"), 0)
    before = ""
    for line in lines:
        if len(line) != 3 or not all(line):
            wrong.append(f"three cells with something in them: {line}")
            continue
        upstream, here, how = line
        # Each is checked by something that exists, or is said to be missing.
        if not (spans(how) or "same test" in how or "not yet" in here):
            wrong.append(f"{upstream}: checked by nothing")
        if "same test" in how and not re.search("::|same test", before):
            wrong.append(f"{upstream}: the same test as which?")
        before = how
        for span in spans(here) + spans(how):
            path, _, name = span.partition("::")
            if span.startswith("wellread "):
                checked["command"] += 1
                command, *arguments = shlex.split(span)[1:]
                given = {word.partition("=")[0] for word in arguments if word.startswith("--")}
                wrong += [f"{span}: no {option}" for option in given - options(command)]
            elif span.startswith("wellread."):
                checked["attribute"] += 1
                found = wellread
                for part in span.split(".")[1:]:
                    if not hasattr(found, part):
                        __import__(f"{found.__name__}.{part}")
                    found = getattr(found, part)
            elif name:
                checked["test"] += 1
                if not has_test(ROOT / path, name):
                    wrong.append(f"{span}: no such test")
            elif re.fullmatch(r"[\w.-]+(/[\w.*-]+)+", span) and not span.startswith("results/"):
                checked["path"] += 1
                if not (ROOT / span).exists():
                    wrong.append(f"{span}: no such file")
    assert not wrong, "\n".join(wrong)
    assert checked["test"] > 100 and checked["path"] > 30 and checked["command"] > 30, checked


def measured(page, caption):
    """The rows of the table below the caption that begins so, as dictionaries."""
    text = (DOCS / page).read_text().split(f"**{caption}")[1].split("\n\n")[1]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines()]
    return [dict(zip(head, row, strict=True)) for row in rows]


def rate(text):
    """The number of images a second at the beginning of a cell."""
    return int(text.split()[0].replace(",", ""))


def of_upstream(begin):
    """The part here of the line of upstream's documents that begins so."""
    (line,) = [line for line in lines_of_upstream() if line.startswith(f"| {begin}")]
    return line.strip("|").split(" | ")[1]


def test_speeds_named_beside_upstreams_are_those_of_the_tables():
    rows = measured("speed.md", "100 x 100 uint8 noise, not compressed")
    one = [rate(row["1 thread, images/s"]) for row in rows]
    two = [rate(row["2 threads, images/s"]) for row in rows]
    assert f"{1e6 / max(one):.1f} to {1e6 / min(one):.1f} µs an image" in of_upstream("Track 1: 7 ms")
    assert f"{min(two):,} to {max(two):,}/s" in of_upstream("Track 2: 150-200")
    # Read anew in each epoch.
    anew = {row["format"]: rate(row["2 threads, images/s"]) for row in rows if not row["kept"]}
    said = of_upstream("check: tables at or above TIFF")
    tables = [name for name in anew if name not in ("tiff", "ome-zarr")]
    above = [f"`{name}`" for name in tables if anew[name] > anew["tiff"]]
    below = [f"`{name}`" for name in tables if anew[name] < anew["tiff"]]
    assert f"{', '.join(above)} are above it at 100 x 100, {', '.join(below)} below" in said
    # Later epochs, beside the cache with the number of workers that suits it best.
    ratios = {
        (size, how): [
            row["ratio"]
            for caption in re.findall(r"^\*\*([\d,]+ images, .*?)\*\*", (DOCS / page).read_text(), re.M)
            for row in measured(page, caption)
            if row["set as it lies there"] == f"upstream's Parquet, untouched, {how}" and "RAM cache" in row["peer"]
        ]
        for size, page in ((100, "peers-small.md"), (1080, "peers.md"))
        for how in ("no preload", "kept")
    }
    assert all(len(found) == 2 for found in ratios.values())
    least = {key: min((float(one.split()[0]) for one in found if one[0].isdigit()), default=None)
             for key, found in ratios.items()}  # fmt: skip
    said = of_upstream('"50-100x faster')
    assert f"{round(least[100, 'no preload'])} times that cache at 100 x 100" in said
    unclear = any(one.startswith("no verdict") for one in ratios[1080, "no preload"])
    assert unclear and "at 1080 x 1080 no verdict without preload" in said
    assert f"{least[1080, 'kept']:.1f} times with images kept" in said


def library(peer):
    """The library that reads: SPDL reads by tifffile."""
    return peer.replace("SPDL", "tifffile").split(",")[0].split()[0]


def in_phases(text):
    """The parts of a text on the first epoch and on later ones."""
    both = re.fullmatch(r"first epoch: (.*); later epochs: (.*)", text)
    return both.groups() if both else (text, text)


def test_ratios_beside_peers_in_the_readme_are_those_of_the_tables():
    text = (ROOT / "README.md").read_text()
    head = text.split("<!-- figures:begin -->\n")[1].splitlines()[0]
    # It stands above rows of TIFF, OME-Zarr, Lance and Parquet: a format would be true of some alone.
    assert [word for word in ("TIFF", "Zarr", "Lance", "Parquet", "compressed") if word in head] == []
    (images,) = re.findall(
        r"^\| (\d+) images of one channel, 1080 x 1080 `uint16`: speed of wellread over that of the peer \|", head
    )
    *rows, conditions = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text.split(head)[1].split("\n\n")[0].splitlines()[2:]
    ]
    later = f"{images} images, 1080 x 1080 uint16 ("
    captions = (f"First epoch, from opening on: {later}", later)
    tables = [measured("peers.md", caption) for caption in captions]
    # A run of sites by rules of before has no row. Its noise floor is its own.
    (end,) = [i for i, row in enumerate(rows) if row[0].startswith("95 % noise floor of the rows above")]
    sites, floors = rows[end + 1 :], rows[end]
    del rows[end:]
    of_before = "This run is of rules of before." in (DOCS / "peers-plates.md").read_text()
    assert len(rows) == 8 and len(sites) == (0 if of_before else 2)
    # These are no rows of the table: kept images, and pyarrow on a file that suits it.
    others = ("kept", "an image per row group")
    order, when = [], ("first epoch", "later epochs")
    for peers, *ratios, known in rows:
        for phase, table, ratio, peer in zip(when, tables, ratios, in_phases(peers), strict=True):
            (of_peer,) = [
                row
                for row in table
                if row["peer"] == peer and not any(word in row["set as it lies there"] for word in others)
            ]
            assert re.sub("^no verdict: [^;]*", "no verdict", of_peer["ratio"]) == ratio, peer
            # Bare pixels are a file of their own; all others read what wellread reads.
            own = "bare pixels" in peer or "all images in one array" in peer
            note = "a file of its own" if own else "both read the same files"
            phases = re.findall(rf"{note}[^;]*?(?: \((first epoch|later epochs)\))?(?:;|$)", known)
            assert "" in phases or phase in phases, peer
            assert ("not compressed" in known) == ("TIFF" in of_peer["set as it lies there"]), peer
            # Of the ways to use it, the one that comes closest in this phase, as far as ratios stand there.
            ways = [
                float(row["ratio"].split()[0])
                for row in table
                if library(row["peer"]) == library(peer)
                and re.match("[0-9]", row["ratio"])
                and not any(word in row["set as it lies there"] for word in others)
            ]
            if re.match("[0-9]", ratio):
                assert float(ratio.split()[0]) == min(ways), (peer, ways)
        order += [
            i
            for i, row in enumerate(tables[1])
            if row["peer"] == in_phases(peers)[1] and not any(word in row["set as it lies there"] for word in others)
        ]
    # As the table of later epochs has them, those that come closest first.
    assert order == sorted(order)
    lzw = "TIFF, LZW in one strip (as JUMP's microscope writes)"
    of_sites = [
        f"Sites of 5 channels, a file for each**, {phase}" for phase in ("first epoch, from opening", "later")
    ]
    for (about, *ratios, _), _ in [sites] if sites else []:
        assert about.startswith("192 generated sites of 5 channels, TIFF with LZW")
        names = in_phases(re.split("TIFF with LZW[:;] ", about)[1])
        for caption, ratio, name in zip(of_sites, ratios, names, strict=True):
            ratios_of_rows = {
                row["A"]: row["time of A / time of B"]
                for row in measured("peers-plates.md", caption)
                if row["set"] == lzw
            }
            assert ratios_of_rows[name] == ratio, caption
            known = [float(one.split()[0]) for one in ratios_of_rows.values() if re.match("[0-9]", one)]
            assert not known or not re.match("[0-9]", ratio) or float(ratio.split()[0]) == min(known), caption
    # The noise that the pages have behind each table.
    for page, titles, row in (
        ("peers.md", captions, floors),
        ("peers-plates.md", of_sites, sites[1] if sites else ()),
    ):
        for caption, percent in zip(titles, row[1:3], strict=False):
            behind = (DOCS / page).read_text().split(f"**{caption}")[1]
            floor = float(re.search(r"ran twice in a round: ([\d.]+)%", behind)[1])
            assert abs(int(percent.removesuffix(" %")) - floor) <= 0.6, caption
    assert floors[3].startswith("no verdict: ") and conditions[0] == "all rows" and "6 rounds" in conditions[3]
    # The case against wellread is in the row of its peer: of both sets the rounds that are fewer.
    (bare,) = [known for peers, _, _, known in rows if peers.startswith("pyarrow, bare pixels")]
    told = int(re.search(r"each image, the peer's first epoch was faster in (\d) of 6 rounds$", bare)[1])
    lost = []
    for images in ("20,000", "1,000"):
        caption = f"First epoch, from opening on: {images} images, 100 x 100 uint8 noise, batches of 16"
        (bare,) = [
            row["ratio"]
            for row in measured("peers-small.md", caption)
            if row["set as it lies there"] == "typed Parquet, an image per row group" and "binary" in row["peer"]
        ]
        lost.append(re.search(r"peer faster in (\d) of 6 rounds$", bare))
    # A row with a verdict has no number of rounds.
    assert all(int(one[1]) >= told for one in lost if one)
    assert not all(lost) or told == min(int(one[1]) for one in lost)


def test_one_line_installs_on_the_first_screen():
    screen = (ROOT / "README.md").read_text().split("\n## ")[0]
    (install,) = re.findall(r"```text\n(.*?)```", screen, re.S)
    (line,) = install.splitlines()
    assert line in (DOCS / "howto/install.md").read_text()
    # What pip builds: the package and the command.
    for folder, name in ((".", "wellread"), ("./crates/wellread-cli", "wellread-cli")):
        assert folder in line.split("pip install ")[1].split()
        project = (ROOT / folder / "pyproject.toml").read_text()
        assert f'\nname = "{name}"\n' in project and '\nbuild-backend = "maturin"\n' in project
        # Files that maturin packs, and the crate that it compiles.
        (readme,) = re.findall(r'^readme = "(.*)"$', project, re.M)
        (licences,) = re.findall(r"^license-files = \[(.*)\]$", project, re.M)
        manifest = re.search(r'^manifest-path = "(.*)"$', project, re.M)
        cargo = ROOT / folder / (manifest[1] if manifest else "Cargo.toml")
        for file in (readme, *re.findall(r'"(.*?)"', licences), cargo):
            assert (ROOT / folder / file).is_file(), f"{folder}: {file}"
        # The line says what the build leaves out.
        (default,) = re.findall(r"^default = \[(.*)\]$", cargo.read_text(), re.M)
        engines = {"lance", "vortex", "duckdb", "remote", "sqlite", "engines"}
        assert not engines & set(re.findall(r'"(.*?)"', default)), folder
    assert (
        "leaves out Lance, Vortex, DuckDB, buckets and web addresses (S3, Google Cloud, Azure, http), and SQLite"
        in screen
    )
    (rust,) = re.findall(r'^rust-version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M)
    for text in (screen, (DOCS / "howto/install.md").read_text()):
        assert f"Rust {rust} or newer" in text


def test_folders_of_the_cache_are_those_that_the_sources_name():
    listed = set(re.findall(r"`~/\.cache/wellread/(\w+)`", (DOCS / "howto/install.md").read_text()))
    # The folder of the cache by its function, by what calls it, or by its name.
    place = (
        r'cache_folder\(\)\.join\("|\bcache\.join\("(?:wellread/)?|join\("wellread"\)\.join\("|cache, "wellread", "'
    )
    sources = [*(ROOT / "crates").glob("*/src/**/*.rs"), *(ROOT / "python/wellread").rglob("*.py")]
    named = {name for file in sources for name in re.findall(rf'(?:{place})(\w+)"', file.read_text())}
    # Parts of the folder of a revision.
    within = {"bin", "worktree", "target"}
    assert listed == named - within


def test_ten_lines_train_on_a_plate():
    section = (ROOT / "README.md").read_text().split("\n## Train on a plate\n")[1].split("\n## ")[0]
    own = [block for block in ALL if block.page == ROOT / "README.md"]
    assert [block.place for block in own if block.hidden] == [], "a command of the README needs a hidden one"
    train = next(block for block in own if block.language == "python")
    assert train.text in section and not train.smaller and train.not_run is None
    lines = train.text.splitlines()
    assert len(lines) == 10 and all(line.strip() for line in lines)
    assert "These ten lines train" in section


def test_the_blocks_of_the_readme_run_as_they_are_printed():
    own = [block for block in ALL if block.page == ROOT / "README.md"]
    run = [block for block in own if block.language in RUN and block.not_run is None]
    assert {block.language for block in run} == {"sh", "python"}
    for block in run:
        assert not block.smaller and not block.hidden and block.exits == (0,), block.place
    use = (ROOT / "README.md").read_text().split("\n## Use it\n")[1].split("\n## ")[0]
    assert sum(block.text in use for block in run) == 2, "a command and Python"
    # The one that does not run builds the program.
    (left_out,) = (block.text for block in own if block.not_run)
    assert left_out.startswith("make demo ")


def test_the_citation_is_of_this_version():
    cited = (ROOT / "CITATION.cff").read_text()
    cargo = (ROOT / "Cargo.toml").read_text()
    version, licence, place = (
        re.search(rf'^{key} = "(.*)"$', cargo, re.M).group(1) for key in ("version", "license", "repository")
    )
    licences = [f"  - {name}" for name in licence.split(" OR ")]
    for line in [f"version: {version}", f"repository-code: {place}", *licences]:
        assert f"\n{line}\n" in cited, line
    # Before a release, a commit tells what was used.
    assert "Before a release, add the commit that you used." in cited


def documented(section):
    """The columns that the pages of result columns have for a table: all, and those that are always there."""
    text = "\n".join((DOCS / f"result-columns{page}.md").read_text() for page in ("", "-more"))
    text = text.split(f"\n## {section}\n")[1].split("\n## ")[0].split("\n# ")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|$", text, re.M)
    every = {name for names, _ in rows for name in spans(names)}
    return every, {name for names, about in rows if not about.startswith("*where*") for name in spans(names)}


def test_result_columns_are_those_that_are_written(wellread, tmp_path):
    import pyarrow.parquet as pq

    common = ["--formats", "parquet", "--repeats", 1, "--time-budget", 100]
    wellread(
        "bench", "all", "--images", 6, "--size", "16x16", *common, "--samples", 2, "--steps", 1, "--batch-size", 2,
        "--batch-sizes", 2, "--workers", 0, "--access", "random", "--transform", "none", "--cache", "none",
        "--mode", "inference", "--out", tmp_path / "tracks",
    )  # fmt: skip
    wellread(
        "bench", "storage", "--images", 1, "--size", "16x16", "--depth", 2, *common, "--no-cold",
        "--random-images", 1, "--sweep", "--out", tmp_path / "sweep",
    )  # fmt: skip
    of_all, always_of_all = documented("In every table of `bench`")
    written = {path.stem: path for folder in ("tracks", "sweep") for path in (tmp_path / folder).glob("*.parquet")}
    assert len(written) == 7
    for name, path in written.items():
        columns = set(pq.read_schema(path).names)
        every, always = documented(name)
        assert columns <= every | of_all, f"{name}: not documented: {columns - every - of_all}"
        missing = (always | always_of_all) - columns
        assert not missing, f"{name}: documented and not written: {missing}"
        with path.with_suffix(".csv").open() as csv:
            assert set(csv.readline().strip().split(",")) == columns
    for path in (tmp_path / "tracks/samples").glob("*.parquet"):
        assert documented("samples")[0] <= set(pq.read_schema(path).names)
    summary = json.loads((tmp_path / "tracks/summary.json").read_text())
    assert set(summary) == documented("summary.json")[0]

    document = wellread(
        "infer", "--framework", "candle", "--model", "resnet50", "--batch-sizes", 1, "--iterations", 1, "--warmup", 0,
        "--input-shape", "3,32,32", "--output-dir", tmp_path / "raw", "--model-dir", tmp_path / "models",
    )  # fmt: skip
    assert document
    (table,) = (tmp_path / "raw").glob("*.csv")
    with table.open() as csv:
        assert set(csv.readline().strip().split(",")) == documented("infer")[0]


def test_commands_and_files_named_in_the_text_are_there():
    wrong = []
    known = set(re.findall(r"\(commands/([a-z-]+)\.md\) \|", (DOCS / "commands.md").read_text()))
    assert len(known) > 8
    known.add("task-native")  # what `wellread tasks` starts; its help does not list it
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."} - {"results"}
    for page in [*pages(), ROOT / "CONTRIBUTING.md"]:
        for span in spans(texts(page)):
            words = span.split()
            if words[0] == "wellread" and len(words) > 1 and re.fullmatch(r"[a-z-]+", words[1]):
                names = words[1].split("|")
                wrong += [f"{name_of(page)}: {span}: no such command" for name in names if name not in known]
                if set(names) <= known - {"task-native"}:
                    given = {re.match(r"--[a-z-]+", word).group() for word in words[2:] if re.match(r"--[a-z]", word)}
                    missing = given - set.union(*(options(name) for name in names))
                    wrong += [f"{name_of(page)}: {span}: no {option}" for option in missing]
            elif re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", span) and span.split("/")[0] in folders:
                wrong += [] if (ROOT / span).exists() else [f"{name_of(page)}: {span}: no such file"]
    assert not wrong, "\n".join(wrong)


def test_bench_in_the_text_names_what_it_measures():
    """A command that somebody copies has a benchmark, as in `bench loop --steps 2`; alone it is wrong usage."""
    alone = re.compile(r"wellread bench --(?!recipe|help)[a-z-]+[ =]\S")
    named = [(name_of(page), span) for page in pages() for span in spans(texts(page))]
    assert any(span.startswith("wellread bench dataloader --framework ") for _, span in named)
    assert [one for one in named if alone.match(one[1])] == []


def test_make_targets_named_in_the_text_are_there():
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))
    named = set()
    for page in [*pages(), ROOT / "CONTRIBUTING.md"]:
        lines = [line for block in blocks(page) if block.language == "sh" for line in block.text.splitlines()]
        for text in [*spans(texts(page)), *lines]:
            named |= {(name_of(page), target) for target in re.findall(r"^make ([a-z][a-z-]*)", text)}
    assert len(named) > 30
    assert [one for one in sorted(named) if one[1] not in targets] == []


def test_pages_with_rust_are_doctests():
    facade = (ROOT / "crates/wellread/src/lib.rs").read_text()
    compiled = re.findall(r'include_str!\("\.\./\.\./\.\./([^"]+)"\)', facade)
    assert {name_of(block.page) for block in ALL if block.language == "rust"} == set(compiled)


UPSTREAM_PHASES = {
    "train": {
        "total_training": "total_training",
        "model_initialization": "model_initialization",
        "data_setup": "data_setup",
        "first_epoch": "epoch_breakdown/first_epoch",
        "first_batch_loading": "epoch_breakdown/data_loading_first_batch",
        "first_batch_forward": "epoch_breakdown/model_forward_first_batch",
        "full_training": "full_training",
    },
    "inference": {
        "total_inference": "total_inference",
        "model_initialization": "model_initialization",
        "checkpoint_loading": "checkpoint_loading",
        "first_batch_loading": "batch_breakdown/first_batch_loading",
        "first_batch_to_device": "batch_breakdown/first_batch_to_device",
        "first_batch_forward": "batch_breakdown/first_batch_forward",
        "first_batch_postprocess": "batch_breakdown/first_batch_postprocess",
        "full_prediction": "full_prediction",
    },
}


@pytest.mark.parametrize("mode", UPSTREAM_PHASES)
def test_tasks_have_every_phase_that_upstream_names(mode, wellread, place, tmp_path, monkeypatch):
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    timer = {"elapsed_seconds": 0.5, "memory_delta_mb": 2.0, "peak_memory_mb": 60.0}
    lines = [{"phase": phase, **timer} for phase in UPSTREAM_PHASES[mode]]
    lines += [{"info": {"num_batches": 3, "batch_size": 8, "num_samples": 24}}, {"final_metrics": {"loss": 0.25}}]
    experiment = tmp_path / "configs/experiment/e.sh"
    experiment.parent.mkdir(parents=True)
    experiment.write_text("".join(f"echo '{json.dumps(line)}' >> $WELLREAD_PHASES\n" for line in lines))
    for command in (["init", "-q", "-b", "main", "."], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    (tmp_path / "tasks.csv").write_text("branch,experiment,trainer,batch_size\nmain,e,cpu,8\n")
    out = tmp_path / "out.json"
    wellread("tasks", mode, "--repo", tmp_path, "--config", tmp_path / "tasks.csv", "--output", out)
    (entry,) = json.loads(out.read_text())
    assert entry["success"] is True and entry["error"] is None
    assert {"branch", "experiment", "timestamp", "success", "git_info", "metrics"} <= set(entry)
    assert set(entry["git_info"]) == {"branch", "commit_hash", "commit_date"}
    for phase, path in UPSTREAM_PHASES[mode].items():
        found = entry["metrics"]
        for key in path.split("/"):
            found = found[key]
        assert timer.items() <= found.items(), phase
    info = entry["metrics"]["dataset_info" if mode == "train" else "inference_info"]
    assert (info["num_batches"], info["batch_size"]) == (3, 8)
    assert mode == "inference" or info["num_train_batches"] == 3
    # Every timer says 0.5 s: of the first epoch, or of the whole prediction.
    assert info["throughput_samples_per_sec"] == 48 and info["avg_time_per_batch"] == pytest.approx(0.5 / 3)
    assert info["measured_over"] == ("first_epoch" if mode == "train" else "full_prediction")
    total = entry["metrics"]["total_training" if mode == "train" else "total_inference"]
    assert total["peak_memory_mb"] == total["peak_host_memory_mb"] == 60.0
    assert entry["metrics"]["final_metrics"] == {"loss": 0.25}
