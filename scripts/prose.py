#!/usr/bin/env python3
"""Fails on sentences that docs/contributing/style.md forbids.

    python3 scripts/prose.py [PATH ...]

Without a path it reads the files of `CLEAN`. It prints `FILE:LINE: RULE: ADVICE: SENTENCE` for each finding and ends
with 1 when there is one, with 2 when a file is missing. It needs nothing but Python 3.10.

    file -> paragraphs (Markdown, Rust docs and help texts, Python docstrings) -> sentences -> `RULES` -> findings
    crates/*/src, python/wellread, benches, examples, scripts -> texts in the code -> the same
    Cargo.toml, Makefile, workflows, packaging … -> descriptions and # comments -> the same

Texts in the code are errors, hints, notes, and titles and captions of plots.

Code blocks, pictures of lines and arrows, quotes and HTML comments are left out, and so are tables that a script has
written. In another table the parts of a cell
between semicolons are sentences. Inline code counts as one word. `<!-- prose: RULE -->` on a line of a sentence
allows what that rule forbids there.

Long because it is one program without a package: `make lint` runs it before anything is installed.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts")]
import house  # noqa: E402

# Files without a finding, but for those of `NOT_YET`. Add a file or pattern when it is clean.
CLEAN = (
    ".github/*.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "crates/README.md",
    "crates/*/README.md",
    "docs/*.md",
    "docs/architecture/*.md",
    "docs/commands/*.md",
    "docs/contributing/*.md",
    "docs/decisions/*.md",
    "docs/formats/*.md",
    "docs/gallery/*.md",
    "docs/howto/*.md",
    "docs/reference/*.md",
    "docs/reference/python/*.md",
    "docs/results/*.md",
    "examples/**/*.md",
    "examples/**/*.py",
    "fuzz/*.md",
    "python/README.md",
    "python/wellread/**/*.py",
    "python/wellread/**/*.pyi",
    "scripts/*.py",
    "tests/python/**/*.py",
)
# Titles of decisions.
NOT_YET = ("docs/SUMMARY.md",)
# Pages that explain upstream, or whose readers know the word.
KNOW_UPSTREAM = ("docs/upstream.md", "docs/decisions/", "docs/results/", "CHANGELOG.md", "benches/")

MOST_WORDS = 25
METAPHORS = (
    "batteries included", "bells and whistles", "bread and butter", "front door", "game changer", "heavy lifting",
    "in a nutshell", "low-hanging", "magic", "on steroids", "out of the box", "pave the way", "rule of thumb",
    "secret sauce", "silver bullet", "sweet spot", "swiss army", "tip of the iceberg", "under the hood",
)  # fmt: skip
FILLERS = (
    "blazing", "blazingly", "easily", "effortless", "effortlessly", "honest", "honestly", "needless to say",
    "of course", "powerful", "seamless", "seamlessly", "simply",
)  # fmt: skip
CLAUSE = re.compile(r"^(?:Who|Whoever|Whose|What|Whatever)\b")
SAYING = r"(?:says?|said|tells?|told|shows?|knows?|decides?)[.:;]?$"
INVERSION = re.compile(
    # "Of these, two …"
    r"^Of (?!course\b)"
    # "what is wrong with them, DuckDB says."
    r"|, (?!(?:and|or|but|which|that|who|as|so|if|where|when|than|it|to)\b)"
    rf"(?:(?!and |or )[\w'-]+ ){{1,3}}{SAYING}|\bthen {SAYING}"
    # "beside it stands …", "Closest comes …"
    r"|(?:^|[;:,] (?:and |but )?)(?i:beside|behind|below|above|closest)(?: [\w']+){0,2} (?:stands?|comes?|lies?) "
    r"|^(?:There|Then|So) (?:stands?|comes?|lies?|says?) "
)
# "is read by the store": the part that acts stands behind. "By its name" and "by hand" are ways, not parts.
IRREGULAR = (
    "begun", "bound", "brought", "built", "chosen", "cut", "done", "drawn", "found", "given", "held", "hidden",
    "kept", "known", "led", "left", "lost", "made", "meant", "met", "put", "read", "run", "said", "seen", "sent",
    "set", "shown", "split", "taken", "told", "understood", "won", "written",
)  # fmt: skip
PASSIVE = re.compile(
    r"\b(?:is|are|was|were|be|been|being)(?: (?:not|never|also|only|now|always|often|then|still|\w+ly))?"
    rf" (?:\w+-)?(?:\w+ed|{'|'.join(IRREGULAR)}) by"
    r" (?:a|all|an|another|any|each|every|most|one|our|several|the|those|what|which|who|CODE|[A-Z]\w*)\b"
)
UPSTREAM = re.compile(r"\bupstream(?:'s)?\b", re.IGNORECASE)


@dataclass(frozen=True)
class Sentence:
    """A sentence or heading without its markup, and its lines."""

    text: str
    line: int
    last: int
    heading: bool = False


@dataclass(frozen=True)
class Finding:
    """A sentence that breaks a rule."""

    file: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        advice = RULES[self.rule][0] if self.rule in RULES else "link to docs/upstream.md before"
        return f"{self.file}:{self.line}: {self.rule}: {advice}: {self.text}"


def words(text: str) -> int:
    """The number of its words; punctuation alone is none."""
    return sum(any(c.isalnum() for c in word) for word in text.split())


def bare(text: str) -> str:
    """A sentence from its first letter on."""
    return text.lstrip("*_\"'“([ ")


def any_of(phrases: tuple[str, ...]) -> Callable[[str], bool]:
    """A rule that forbids these phrases."""
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, phrases))})\b", re.IGNORECASE)
    return lambda text: bool(pattern.search(text))


# The advice of each rule, and the test for a sentence that breaks it.
RULES: dict[str, tuple[str, Callable[[str], bool]]] = {
    "long": (f"over {MOST_WORDS} words; make two sentences", lambda text: words(text) > MOST_WORDS),
    "semicolons": ("two semicolons; make sentences or a list", lambda text: text.count(";") > 1),
    "clause": (
        "begin with the subject, not with a clause",
        lambda text: bool(CLAUSE.match(bare(text))) and not text.rstrip("*_)\"'”").endswith("?"),
    ),
    "inversion": ("subject, verb, object", lambda text: bool(INVERSION.search(bare(text)))),
    "passive": ("name the part that acts first", lambda text: bool(PASSIVE.search(text))),
    "metaphor": ("say what happens", any_of(METAPHORS)),
    "filler": ("leave the word out, or give a figure", any_of(FILLERS)),
}
# Headings are no sentences: these rules alone hold for them.
OF_HEADINGS = ("metaphor", "filler", "passive")
# Rules of pages, which no Rust or Python file has to keep.
OF_PAGES = ("passive",)

# Comments, and those of this script.
COMMENT = re.compile(r"^[ \t]*<!--.*?-->|<!-- prose: .*?-->", re.DOTALL | re.MULTILINE)
# What a script writes between two comments. Its tables are lists of names of result files; its text is prose.
GENERATED = re.compile(r"^<!-- ([\w-]+):begin -->.*?<!-- \1:end -->", re.DOTALL | re.MULTILINE)
GENERATED_ROW = re.compile(r"^\|.*$", re.MULTILINE)
ALLOW = re.compile(r"<!-- prose: (\w+)")
FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^#{1,6} ")
PART_END = re.compile(r"(?<!\\)\||;")
ITEM = re.compile(r"^\s*(?:[*+-]|\d+[.)])\s+")
PICTURE = re.compile("[─│┌┐└┘├┤┬┴┼▶◀▲▼]")
# The text of a command behind its options; indented lines of it are examples.
AFTER_HELP = re.compile(r'\bafter_help = "((?:[^"\\]|\\.)*)"', re.DOTALL)
ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|et al|etc|vs|cf|Fig|No|approx)\.$")
END = re.compile(r"[.?!][\"'”’)*_\]]*(?=\s)")


def plain(text: str) -> str:
    """A paragraph without the targets of links; inline code becomes one word. Line breaks stay."""
    text = re.sub(r"`[^`]*`", lambda match: "CODE" + "\n" * match[0].count("\n"), text)
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
    return re.sub(r"<https?://[^>]*>", "LINK", text)


def split(paragraph: str, first: int) -> Iterator[Sentence]:
    """The sentences of a paragraph that begins at this line."""
    text, begin = plain(paragraph), 0
    ends = [match.end() for match in END.finditer(text) if not ABBREVIATION.search(text[: match.start() + 1])]
    for end in [*ends, len(text)]:
        piece = text[begin:end]
        if words(piece):
            line = first + text[: end - len(piece.lstrip())].count("\n")
            yield Sentence(" ".join(piece.split()), line, first + text[:end].count("\n"))
        begin = end


def of_row(row: str, line: int) -> Iterator[Sentence]:
    """The sentences of the cells in a row of a table. A semicolon ends one: cells are often lists."""
    for part in PART_END.split(plain(row)):
        yield from split(part, line)


def of_markdown(text: str, first: int = 1) -> Iterator[Sentence]:
    """Sentences of paragraphs, list items and cells of tables, and headings; no code blocks, quotes or comments."""
    held: list[str] = []
    start, fence, listed = first, "", False
    text = GENERATED.sub(lambda match: GENERATED_ROW.sub("", match[0]), text)
    text = COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    for number, line in enumerate([*text.split("\n"), ""], first):
        stripped = line.strip()
        if fence:
            fence = "" if stripped.startswith(fence) else fence
            continue
        opened, heading, item = FENCE.match(line), HEADING.match(line), ITEM.match(line)
        table = stripped.startswith(("|", ">")) or bool(PICTURE.search(stripped))
        # An indented block that is no part of a list or paragraph.
        code = line.startswith("    ") and not held and not listed
        if held and (not stripped or opened or heading or item or table):
            yield from split("\n".join(held), start)
            held = []
        if opened:
            fence = opened[1]
        elif stripped.startswith("|"):
            yield from of_row(stripped, number)
        elif heading:
            yield Sentence(plain(line[heading.end() :]), number, number, heading=True)
        elif stripped and not table and not code:
            start = start if held else number
            held.append(line[item.end() :] if item else stripped)
        if stripped:
            listed = bool(item) or (listed and line[0] == " ")


def of_rust(text: str) -> Iterator[Sentence]:
    """Sentences of `///` and `//!` docs, which are also help texts of options, and of help texts of commands."""
    held: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        match = re.match(r"\s*//[/!](?!/) ?(.*)", line)
        if match:
            held.append(match[1])
        elif held:
            yield from of_markdown("\n".join(held), number - len(held))
            held = []
    for said in AFTER_HELP.finditer(text):
        lines = said[1].replace('\\"', '"').split("\n")
        lines = ["" if line == "\\" or line.startswith(" ") else line for line in lines]
        yield from of_markdown("\n".join(lines), 1 + text[: said.start(1)].count("\n"))


def of_python(text: str) -> Iterator[Sentence]:
    """Sentences of docstrings, also of attributes."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            head, *rest = node.value.value.split("\n")
            margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
            yield from of_markdown("\n".join([head, *(line[margin:] for line in rest)]), node.lineno)


# Texts that are code: of SQL, Python and HTML.
HELP = "after_help = "
CODE_TEXT = re.compile(r"\s*(?:<|\.\w+\{|SELECT|BEGIN;|PRAGMA|import |from \w+ import )")
ESCAPED = re.compile(r"\\(?:\n\s*|u\{\w+\}|x\w\w|.)", re.DOTALL)
PLACEHOLDER = re.compile(r"\{[^{}]*\}")


def escaped(match: re.Match[str]) -> str:
    """The letter of an escape in a Rust text; others than these are of no interest here."""
    return {"\\\n": "", "\\n": "\n", '\\"': '"', "\\t": " "}.get(match[0][:2], "x")


def sentences(said: str, line: int) -> Iterator[Sentence]:
    """The sentences of a text in code that begins at this line. A placeholder counts as one word."""
    if " " in said.strip() and not CODE_TEXT.match(said):
        # An error and its hint are statements of their own.
        text = PLACEHOLDER.sub("CODE", said.replace("{{", "(").replace("}}", ")")).replace(" (hint: ", ". (")
        yield from (Sentence(one.text, line, line, one.heading) for one in of_markdown(text))


def of_rust_code(text: str) -> Iterator[Sentence]:
    """Sentences of the texts in Rust code, without tests, docs, comments and the help texts of commands."""
    # Test code is at the end of most files: a file without it needs no second look.
    tests = []
    if house.TEST.search(text):
        bare = house.LITERALS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        tests = [(match.start(), house.end_of_item(bare, match.end())) for match in house.TEST.finditer(bare)]
    line, at = 1, 0
    for match in house.LITERALS.finditer(text):
        begin = match.start()
        line, at = line + text.count("\n", at, begin), begin
        quoted = match[0][0] == '"'
        if not (quoted or match[0][0] == "r") or " " not in match[0] or text.startswith(HELP, begin - len(HELP)):
            continue
        if not any(first <= begin < end for first, end in tests):
            said = ESCAPED.sub(escaped, match[0][1:-1]) if quoted else match[0].strip('r#"')
            yield from sentences(said, line)


def of_python_code(text: str) -> Iterator[Sentence]:
    """Sentences of the texts in Python code, without docstrings."""
    nodes = list(ast.walk(ast.parse(text)))
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            said = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield from sentences(said, node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield from sentences(node.value, node.lineno)


# The files whose code says something to users, and how their texts are read.
CODE = {
    "crates/*/src/**/*.rs": of_rust_code,
    **dict.fromkeys(
        ("benches/**/*.py", "examples/**/*.py", "python/wellread/**/*.py", "scripts/*.py"), of_python_code
    ),
}


# Scripts whose texts are patterns, licences, or cells of tables. Sentences that they write are checked on the pages.
NO_PROSE = ("scripts/figures.py", "scripts/prose.py", "scripts/third_party.py")


def of_code() -> list[Finding]:
    """The findings of texts in the files of `CODE`."""
    found: list[Finding] = []
    for pattern, read in CODE.items():
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT)
            if path.stem != "tests" and "tests" not in name.parts and name.as_posix() not in NO_PROSE:
                found += findings(path.read_text(encoding="utf-8"), name.as_posix(), read)
    return found


READERS: dict[str, Callable[[str], Iterator[Sentence]]] = {
    ".md": of_markdown,
    ".rs": of_rust,
    ".py": of_python,
    ".pyi": of_python,
}


def findings(text: str, file: str, read: Callable[[str], Iterator[Sentence]] | None = None) -> list[Finding]:
    """The sentences of a text that break a rule; `file` is its path from the root. `read` is none of `READERS`."""
    allowed = [set(ALLOW.findall(line)) for line in text.split("\n")]
    found: list[Finding] = []
    page = file.endswith(".md")
    said = not (read or page) or file.startswith(KNOW_UPSTREAM)
    # The first "upstream" of a page for users is in a sentence with a link to upstream.md, or after one. A program's
    # texts have no links, so they never say it.
    link = None if read else re.search(r"\]\([^)]*upstream\.md", text)
    introduced = text[: link.start()].count("\n") + 1 if link else sys.maxsize
    for sentence in (read or READERS[Path(file).suffix])(text):
        names = (name for name in (OF_HEADINGS if sentence.heading else RULES) if page or name not in OF_PAGES)
        broken = [name for name in names if RULES[name][1](sentence.text)]
        if not said and UPSTREAM.search(sentence.text):
            said = True
            broken += ["upstream"] if introduced > sentence.last else []
        skip = set[str]().union(*allowed[sentence.line - 1 : sentence.last])
        found += [Finding(file, sentence.line, name, sentence.text) for name in broken if name not in skip]
    return found


# Files of builds, whose comments and descriptions say something to those who read them.
BUILD_FILES = (
    ".ci/run",
    ".github/**/*.yml",
    "Cargo.toml",
    "Containerfile",
    "Makefile",
    "crates/*/Cargo.toml",
    "crates/wellread-cli/pyproject.toml",
    "deny.toml",
    "docs/book.toml",
    "packaging/**/*.rb",
    "packaging/**/*.yaml",
    "pyproject.toml",
    "ruff.toml",
    "rustfmt.toml",
    "scripts/*.sh",
)
HASH_COMMENT = re.compile(r"^\s*#(?![!#]) ?(.*)$|^[\w-]+:.*?## (.*)$")
DESCRIBED = re.compile(r"""^\s*(?:description|desc|summary)(?: = |: | )(["']?)(.*)\1$""")


def of_build(text: str) -> Iterator[Sentence]:
    """Sentences of `#` comments in a file of a build, of the help of a Makefile's targets, and of descriptions."""
    held: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        comment, described = HASH_COMMENT.match(line), DESCRIBED.match(line)
        if comment and comment[1] is not None:
            # Indented lines are lists of names.
            held.append("" if comment[1].startswith("  ") else comment[1])
            continue
        if held:
            yield from of_markdown("\n".join(held), number - len(held))
            held = []
        said = comment[2] if comment else described[2] if described else ""
        yield from split(said, number)


def of_builds() -> list[Finding]:
    """The findings of the files of `BUILD_FILES`."""
    files = dict.fromkeys(path for pattern in BUILD_FILES for path in sorted(ROOT.glob(pattern)))
    return [
        finding
        for path in files
        for finding in findings(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix(), of_build)
    ]


def main(paths: list[str]) -> int:
    """Print the findings of these files, or of `CLEAN`; 1 when there is one, 2 when a file is missing."""
    files = [Path(path).resolve() for path in paths]
    missing = [str(path) for path in files if not path.is_file()]
    for pattern in () if paths else CLEAN:
        matched = [path for path in sorted(ROOT.glob(pattern)) if path.relative_to(ROOT).as_posix() not in NOT_YET]
        files += matched
        missing += [] if matched else [pattern]
    if missing:
        print(f"no such file: {', '.join(missing)}", file=sys.stderr)
        return 2
    found: list[Finding] = []
    for path in files:
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()
        found += findings(path.read_text(encoding="utf-8"), name)
    found += [] if paths else [*of_rust_folders(), *of_code(), *of_builds()]
    for finding in found:
        print(finding)
    return 1 if found else 0


# Folders of Rust files whose docs and comments have no finding.
RUST = ("crates", "fuzz")
RUST_COMMENT = re.compile(r"^([ \t]*)//([/!]?)(?!/)(.*)$", re.MULTILINE)


def comments(text: str) -> str:
    """A Rust file with its `//` comments as docs and without its docs, line by line."""
    return RUST_COMMENT.sub(lambda match: "" if match[2] else f"{match[1]}///{match[3]}", text)


def of_rust_folders() -> list[Finding]:
    """The findings of docs and comments in the folders of `RUST`."""
    found: list[Finding] = []
    for path in (path for folder in RUST for path in sorted((ROOT / folder).rglob("*.rs"))):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        found += [*findings(text, name), *findings(comments(text), name)]
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
