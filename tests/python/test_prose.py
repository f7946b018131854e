"""The check of prose: what each rule finds and leaves alone, where it looks, and that the listed files are clean."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load():
    spec = importlib.util.spec_from_file_location("prose", ROOT / "scripts" / "prose.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["prose"] = module
    spec.loader.exec_module(module)
    return module


prose = load()


def found(text, file="page.md"):
    """The rules that a text breaks, with the line of each."""
    return [(finding.line, finding.rule) for finding in prose.findings(text, file)]


BAD = {
    "long": ["The loader " + "reads one more image and " * 5 + "ends.", "- " + "word " * 26],
    "semicolons": ["It reads; it decodes; it ends.", "One (a; b; c)."],
    "clause": [
        "What is slow is found by `doctor`.",
        "Who keeps batches waits less.",
        "Whoever opens a set closes it.",
        "**What no interval can.** It covers nothing.",
        "Whatever it reads is checked.",
    ],
    "inversion": [
        "What? The rest is wrong, DuckDB says.",
        "A page that is full, the reader then tells.",
        "Of your own you need two things.",
        "Closest comes tensorstore, in both.",
        "It reads a batch; beside it stands the limit.",
        "Beside each figure stand two limits.",
        "So says the page.",
    ],
    "passive": [
        "The file is read by the store.",
        "Pages are also kept by `lance`.",
        "The lock was never held by Rust.",
        "It may have been re-encoded by another program.",
        "# Pages are read by the store",
    ],
    "metaphor": ["The reader works under the hood.", "It works out of the box."],
    "filler": ["Simply call it.", "This is easily done.", "It measures every step honestly."],
}
GOOD = {
    "long": ["The loader " + "reads one more image and " * 4 + "ends.", "- " + "word " * 25, "`a b c d e f` " * 25],
    "semicolons": ["It reads; it ends.", "`a; b; c` is a list."],
    "clause": [
        "What is slow?",
        "Read what is slow.",
        "Whole images are read.",
        "*What limits it?*",
        "# What is slow",
    ],
    "inversion": [
        "The report shows what is slow, and DuckDB says why.",
        "It is slow, as the report says.",
        "It opens the file, which the page names.",
        "Of course.",  # a filler, and no inversion
        "Soft limits lie above it.",
        "It combines files into an image, by their names.",
        "The reader opens the file, then goes on.",
    ],
    "passive": [
        "The store reads the file.",
        "Rows are matched by name, and read one by one.",
        "The file is opened by itself.",
        "The matrix was checked by hand.",
        "A place is known by its address.",
        "It is slow by a factor of two.",
        "# The store reads pages",
    ],
    "metaphor": ["The reader works in a thread.", "The imagery of a box."],
    "filler": ["It measures every step.", "The complexity is simple.", "The power is measured."],
}


def test_every_rule_has_examples():
    assert set(BAD) == set(GOOD) == set(prose.RULES)


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in BAD.items() for text in texts])
def test_a_rule_finds(rule, text):
    assert rule in [name for _, name in found(text)]


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in GOOD.items() for text in texts])
def test_a_rule_leaves_alone(rule, text):
    assert rule not in [name for _, name in found(text)]


def test_upstream_is_introduced_by_a_link():
    introduced = "It grew from [upstream](docs/upstream.md).\n\nIts code is upstream's.\n"
    assert found(introduced) == []
    assert found("Its code is upstream's.\n\nUpstream is [here](docs/upstream.md).\n") == [(1, "upstream")]
    # The first use alone: one link mends the page.
    assert found("A file of Upstream.\n\nAnother of upstream.\n") == [(1, "upstream")]
    assert found("# From upstream\n") == [(1, "upstream")]
    assert found("Run `recipes/upstream-tracks.toml`. It streams up; upstreaming is a verb.\n") == []
    for known in ("docs/upstream.md", "docs/decisions/0005.md", "CHANGELOG.md"):
        assert found("Upstream's file.\n", known) == []


def test_sentences_and_their_lines():
    text = (
        "# A title\n\nOne sentence. Another, by Kalibera et al. in 2013,\nof 1.5 lines.\n"
        "* An item of `code. With a stop`\n  that goes on.\n* [A link. Of two](x.md)\n"
    )
    assert [(s.text, s.line, s.last, s.heading) for s in prose.of_markdown(text)] == [
        ("A title", 1, 1, True),
        ("One sentence.", 3, 3, False),
        ("Another, by Kalibera et al. in 2013, of 1.5 lines.", 3, 4, False),
        ("An item of CODE that goes on.", 5, 6, False),
        ("A link.", 7, 7, False),
        ("Of two", 7, 7, False),
    ]


def test_code_quotes_and_comments_are_left_out():
    assert found("```sh\nWhat it is.\n```\n") == []
    assert found("   ```sh\n   What it is.\n   ```\nWhat it is.\n") == [(4, "clause")]
    assert found("> What it is.\n\nWhat it is.\n") == [(3, "clause")]
    assert found("<!-- prepare\nWhat it is.\n-->\nWhat it is.\n") == [(4, "clause")]
    # Of what a script writes, tables are left out, and its sentences are not.
    generated = "<!-- peers:begin -->\nWhat it is.\n\n<!-- What it is. -->\n| What it is. |\n<!-- peers:end -->\n"
    assert found(generated + "What it is.\n") == [(2, "clause"), (7, "clause")]
    assert found("An example:\n\n    What it is.\n\nWhat it is.\n") == [(5, "clause")]
    # Indented text of a list item is no code.
    assert found("* An item.\n\n    What it is.\n") == [(3, "clause")]


def test_cells_of_tables_are_read():
    assert found("| What it is. | the rest |\n|---|---|\n| it | Of two one. |\n") == [(1, "clause"), (3, "inversion")]
    assert found("| a |\n|---|\n| Simply `simply`. |\n| upstream |\n") == [(3, "filler"), (4, "upstream")]
    # A cell may be a list: each of its parts has 25 words at most.
    half = "word " * 20
    assert found(f"| {half}; {half}; {half}. | {half} |\n") == []
    assert found(f"| one; {half} {half} |\n") == [(1, "long")]
    # A bar that is escaped, or in code, ends no cell.
    assert found(f"| {half} \\| {half} |\n") == [(1, "long")]
    assert found("| `a; b` or what it is | what it is |\n") == []


def test_a_line_may_be_allowed():
    assert found("What it is. <!-- prose: clause -->\n") == []
    assert found("What it\nis. <!-- prose: clause -->\n") == []
    assert found("What it is. <!-- prose: long -->\n") == [(1, "clause")]
    assert found("What it is. <!-- prose: clause -->\n\nWhat it is.\n") == [(3, "clause")]


def test_rust_docs_are_read():
    text = (
        "//! What it is.\n//! ```\n//! What it is.\n//! ```\n\n// What it is.\nfn f() {}\n"
        "    /// Who it is.\n    ///\n    /// It is.\n"
    )
    assert found(text, "crates/a/src/lib.rs") == [(1, "clause"), (8, "clause")]


def test_help_texts_are_read():
    text = (
        '/// Args.\n#[command(after_help = "\\\nWhat it is.\n\nA \\"good\\" one; two; three.\n\n'
        'Examples:\n  what it is.\n  two; three; four.")]\nstruct Args {\n    /// What it is.\n    #[arg(long)]\n'
        "    what: bool,\n}\n"
    )
    assert sorted(found(text, "crates/a/src/lib.rs")) == [(3, "clause"), (5, "semicolons"), (11, "clause")]


def test_pictures_are_left_out():
    assert found("  what it is ──▶ one; two\n     └── three; four\n\nWhat it is.\n") == [(4, "clause")]


def test_docstrings_are_read():
    text = (
        '"""Reads.\n\nWhat it is.\n"""\n\n# What it is.\nX = "What it is."\n\n\n'
        'class A:\n    """What it is.\n\n    It is:\n\n        What it is.\n    """\n\n'
        '    async def f(self):\n        """Who it is."""\n\n    b: int\n    """What it is."""\n'
    )
    assert sorted(found(text, "python/a.py")) == [(3, "clause"), (11, "clause"), (19, "clause"), (22, "clause")]
    assert found(text, "python/a.pyi") == found(text, "python/a.py")


def test_what_the_program_says(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("Good.\n\nWhat it is.\n")
    assert prose.main([str(page)]) == 1
    advice = "begin with the subject, not with a clause"
    assert capsys.readouterr().out == f"{page.resolve().as_posix()}:3: clause: {advice}: What it is.\n"
    page.write_text("Good.\n")
    assert prose.main([str(page)]) == 0
    assert prose.main([str(page), str(tmp_path / "none.md")]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"no such file: {(tmp_path / 'none.md').resolve()}\n")


def test_rust_comments_are_read():
    code = "    let a = 1; // What it is.\n    //// What it is.\n"
    text = f"//! What it is.\n\n/// It is.\nfn f() {{\n    // What it\n    // is.\n{code}}}\n"
    assert found(prose.comments(text), "crates/a/src/lib.rs") == [(5, "clause")]
    assert prose.comments(text).count("\n") == text.count("\n")


def test_every_folder_of_rust_has_files():
    assert [folder for folder in prose.RUST if not any((prose.ROOT / folder).rglob("*.rs"))] == []


def test_findings_in_rust_folders_are_named(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "lib.rs").write_text("//! What it is.\n\n// Who it is.\nfn f() {}\n")
    (tmp_path / "b.rs").write_text("//! What it is.\n")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "RUST", ("a",))
    assert [(one.file, one.line, one.rule) for one in prose.of_rust_folders()] == [
        ("a/lib.rs", 1, "clause"),
        ("a/lib.rs", 3, "clause"),
    ]


RUST_CODE = (
    "use a;\n\nfn f() -> Error {\n    // \"What a comment has.\"\n    let c = '\"';\n"
    '    Error::new(path, format_args!("What {it} is")).hint(\n        "Of two files, \\\n'
    '         choose {}. One; two; three")\n}\n'
    'const RAW: &str = r#"What "it" is."#;\nconst SQL: &str = "SELECT a; b; c FROM d";\n'
    '#[command(after_help = "What the help says.")]\nstruct Args;\n\n'
    '#[cfg(test)]\nmod tests {\n    const T: &str = "What it is.";\n}\n'
)  # fmt: skip


def test_texts_in_rust_code_are_read():
    read = prose.findings(RUST_CODE, "crates/a/src/lib.rs", prose.of_rust_code)
    assert [(one.line, one.rule, one.text) for one in read] == [
        (6, "clause", "What CODE is"),
        (7, "inversion", "Of two files, choose CODE."),
        (7, "semicolons", "One; two; three"),
        (10, "clause", 'What "it" is.'),
    ]


def test_texts_in_python_code_are_read():
    text = (
        '"""What a docstring says."""\n\n\ndef f(a):\n    raise ValueError(f"What {a} is: " "one; two; three")\n\n\n'
        'TITLE = "What it shows"\nSHORT = "What"\nCODE = "import a; b; c"\n'
    )
    read = prose.findings(text, "python/wellread/a.py", prose.of_python_code)
    assert sorted((one.line, one.rule) for one in read) == [(5, "clause"), (5, "semicolons"), (8, "clause")]


def test_texts_in_code_never_say_upstream():
    text = '//! [Upstream](docs/upstream.md)\nf("upstream\'s Track 1", "--loaders upstream-cache");\n'
    assert [(one.line, one.rule) for one in prose.findings(text, "a.rs", prose.of_rust_code)] == [(2, "upstream")]
    assert found(text, "a.rs") == []


def test_a_hint_is_a_sentence_of_its_own():
    said = "word " * 20
    assert [one.rule for one in prose.findings(f'E("{said}(hint: {said})");', "a.rs", prose.of_rust_code)] == []
    assert [one.rule for one in prose.findings(f'E("{said}({said})");', "a.rs", prose.of_rust_code)] == ["long"]


def test_findings_in_code_are_named(tmp_path, monkeypatch):
    for name in ("crates/a/src/lib.rs", "crates/a/src/tests.rs", "crates/a/tests/it.rs", "python/wellread/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('f("What it is.")\n')
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    assert [(one.file, one.line, one.rule) for one in prose.of_code()] == [
        ("crates/a/src/lib.rs", 1, "clause"),
        ("python/wellread/b.py", 1, "clause"),
    ]


def test_the_listed_files_are_clean(capsys):
    code = prose.main([])
    assert code == 0, capsys.readouterr().out


BUILD_FILE = """\
#!/bin/sh
# What it is, in
# two lines.
#   What a list has.
description = "What an 'image' is"
  desc "An honest text"
name = "What it is" # What it is.
target: other ## Whatever it makes
    # Of two words.
"""


def test_comments_and_descriptions_of_builds_are_read():
    read = prose.findings(BUILD_FILE, "Makefile", prose.of_build)
    assert [(one.line, one.rule) for one in read] == [
        (2, "clause"),
        (5, "clause"),
        (6, "filler"),
        (8, "clause"),
        (9, "inversion"),
    ]


def test_findings_in_files_of_builds_are_named(tmp_path, monkeypatch):
    (tmp_path / "Makefile").write_text("# What it is.\n")
    (tmp_path / "packaging" / "a").mkdir(parents=True)
    (tmp_path / "packaging" / "a" / "b.rb").write_text("# It is.\ndesc 'What it is'\n")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    assert [(one.file, one.line) for one in prose.of_builds()] == [("Makefile", 1), ("packaging/a/b.rb", 2)]


def test_each_pattern_of_files_of_builds_has_a_file():
    assert [pattern for pattern in prose.BUILD_FILES if not any(prose.ROOT.glob(pattern))] == []
    assert all((prose.ROOT / name).is_file() for name in prose.NO_PROSE)
