"""SECURITY.md: the programs that wellread starts, the fuzz targets and the unsafe code are those of the sources."""

import re

import pytest
from test_architecture import CRATES, ROOT, sources
from test_house import house

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def without_tests(file):
    return re.split(r"^#\[cfg\(.*\btest\b.*\)\]\n", file.read_text(encoding="utf-8"), flags=re.M)[0]


def test_every_program_that_is_started_is_named():
    started = {
        program
        for file in sources(*CRATES)
        for program in re.findall(r'\bCommand::new\("([^"]+)"\)', without_tests(file))
    }
    assert {"git", "srun", "sh", "nvidia-smi"} <= started
    # Those whose names are no literal of the call.
    started |= {"cargo", "uv", "pip", "python3"}
    assert not started - set(re.findall(r"`([\w-]+)`", PAGE)), "say in SECURITY.md what starts it"


def test_the_list_of_fuzz_targets_is_whole():
    targets = {file.stem for file in (ROOT / "fuzz").glob("**/fuzz_targets/*.rs")}
    assert len(targets) > 8 and "(fuzz/README.md)" in PAGE
    listed = re.findall(r"^\| `(\w+)`", (ROOT / "fuzz/README.md").read_text(encoding="utf-8"), re.M)
    assert targets == targets & set(listed)


def test_the_amount_of_unsafe_code_is_about_right():
    blocks, lines = re.search(r"about (\d+) `unsafe` blocks in ([\d,]+) lines", PAGE).groups()
    texts = [without_tests(file) for file in sources(*CRATES)]
    of_files = [len(re.findall(r"\bunsafe\s*\{", house.LITERALS.sub("", text))) for text in texts]
    assert sum(of_files) == pytest.approx(int(blocks), rel=0.1)
    assert sum(text.count("\n") for text in texts) == pytest.approx(int(lines.replace(",", "")), rel=0.1)
    assert all("SAFETY" in text for text, count in zip(texts, of_files, strict=True) if count)
