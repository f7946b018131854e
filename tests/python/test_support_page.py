"""docs/support.md: what its table of platforms says of tests (scripts/support-tables.py)."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def load():
    spec = importlib.util.spec_from_file_location("support_tables", ROOT / "scripts" / "support-tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_system_is_called_tested_only_where_a_run_is_on_record():
    tables = load()
    rows = tables.platforms()
    page = (ROOT / "docs" / "support.md").read_text()
    assert f"<!-- platforms:begin -->\n{tables.table(rows)}\n<!-- platforms:end -->" in page
    assert rows[0][-2:] == ["a workflow would test", "run so far"] and len(rows) > 3
    said = {(system.split(" (")[0], processor): ran for system, processor, *_, ran in rows[1:]}
    assert "make test" in said.pop(("Linux", "x86_64"))
    assert ("Linux", "aarch64") in said and set(said.values()) == {"not run yet"}


def test_no_page_says_that_a_workflow_has_run():
    for page in ("SECURITY.md", "docs/support.md"):
        text = (ROOT / page).read_text().replace("\n", " ")
        assert "has not run yet" in text or "have not run yet" in text
        assert "ontinuous integration runs" not in text
