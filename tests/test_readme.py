"""The README is short, shows its picture at once, and says what its code prints."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def test_it_is_read_in_a_minute():
    lines = README.splitlines()
    assert len(lines) <= 150
    assert len(README.split()) <= 1_100
    assert any(line.startswith("![") for line in lines[:25])


def test_its_code_prints_what_it_says(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from run_tutorials import alike

    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    names, printed = {"__name__": "readme"}, 0
    sys.modules.setdefault("readme", sys)
    for language, block in blocks:
        if language == "python":
            exec(compile(block, "README.md", "exec"), names)
        else:
            assert alike(block, said := capsys.readouterr().out), said
            printed += 1
    assert printed == 2
    assert (tmp_path / "report.html").exists()
