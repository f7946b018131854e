"""The check of links: what it finds and leaves alone, and that no page has a link that leads nowhere."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load():
    spec = importlib.util.spec_from_file_location("links", ROOT / "scripts" / "links.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["links"] = module
    spec.loader.exec_module(module)
    return module


links = load()
OTHER = "# A title: of `code`\n\n## Twice\n\n## Twice\n\n```sh\n# no heading\n```\n\n## [Linked](x.md) text ##\n"


@pytest.fixture
def site(tmp_path):
    """A README, and two pages with an image in docs/."""
    (tmp_path / "docs/images").mkdir(parents=True)
    (tmp_path / "docs/images/a.svg").write_text("<svg/>")
    (tmp_path / "docs/other.md").write_text(OTHER)
    (tmp_path / "README.md").write_text("# Read me\n")
    return tmp_path


def found(root, text, name="docs/page.md"):
    page = root / name
    page.write_text(text)
    return [(one.line, one.link, one.cause.split(",")[0]) for one in links.broken(page, root)]


def test_anchors_are_those_of_github(site):
    names = {"a-title-of-code", "twice", "twice-1", "linked-text"}
    assert links.anchors(site / "docs/other.md") == names


def test_links_that_lead_somewhere(site):
    text = (
        '# Own\n\n[a](other.md), [b](other.md#twice-1), [c](#own), ![d](images/a.svg)\n[`code`](other.md "title")\n'
        '[e](https://example.org/none) <a href="other.md">f</a>\n[docs](../docs)\n'
    )
    assert found(site, text) == []


def test_links_that_lead_nowhere(site):
    text = '# Own\n\n[a](none.md)\ntext [b](other.md#thrice) and\n[c](#other) ![d](images/b.svg)\n<img src="c.png">\n'
    assert found(site, text) == [
        (3, "none.md", "no such file"),
        (4, "other.md#thrice", "no such heading"),
        (5, "#other", "no such heading"),
        (5, "images/b.svg", "no such file"),
        (6, "c.png", "no such file"),
    ]


def test_a_page_of_the_site_links_to_pages_of_the_site(site):
    assert found(site, "[a](../README.md)\n") == [(1, "../README.md", "it leaves docs/")]
    assert found(site, "[a](docs/other.md)\n", "README.md") == []


def test_blocks_comments_and_code_are_left_alone(site):
    text = "```sh\n[a](none.md)\n```\n<!-- [b](none.md)\n-->\n`[c](none.md)`\n[d](none.md)\n"
    assert found(site, text) == [(7, "none.md", "no such file")]


def test_underlined_headings_are_found(site):
    text = "text\n====\n\nmore\n---\n\n---\n\n| a |\n|---|\n| b |\n\n```sh\nx\n===\n```\n"
    cause = "it makes a heading of the line above; begin a heading with #"
    assert found(site, text) == [(2, "====", cause), (5, "---", cause)]


def test_what_the_program_says(site, capsys):
    page = site / "docs/page.md"
    page.write_text("[a](none.md)\n")
    assert links.main([str(page)]) == 1
    assert capsys.readouterr().out == f"{page.as_posix()}:1: none.md: no such file\n"
    page.write_text("[a](other.md)\n")
    assert links.main([str(page)]) == 0
    assert links.main([str(site / "docs/gone.md")]) == 2


def test_no_page_has_a_broken_link(capsys):
    code = links.main([])
    assert code == 0, capsys.readouterr().out
