from __future__ import annotations

import json
from pathlib import Path

import pytest

from state import schema_json
from state.events import KINDS


def test_the_committed_schema_is_current() -> None:
    assert schema_json.PATH.read_text(encoding="utf-8") == schema_json.text(), "run `python -m state.schema_json --write`"
    assert schema_json.main(["--check"]) == 0


def test_every_kind_has_its_shape() -> None:
    schema = schema_json.build()
    assert schema["allOf"][0] == {"$ref": "#/$defs/Record"}
    assert [part["if"]["properties"]["kind"]["const"] for part in schema["allOf"][1:]] == list(KINDS)
    promotion = next(part for part in schema["allOf"][1:] if part["if"]["properties"]["kind"]["const"] == "promotion")
    assert promotion["then"]["properties"]["data"] == {"$ref": "#/$defs/Promoted"}
    assert "speedup" in schema["$defs"]["Promoted"]["required"]
    assert not any(definition.get("additionalProperties") is False for definition in schema["$defs"].values())


def test_a_stale_file_is_noticed_and_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "attempts.schema.json"
    monkeypatch.setattr(schema_json, "PATH", path)
    assert schema_json.main(["--check"]) == 1
    assert "--write" in capsys.readouterr().err
    assert schema_json.main(["--write"]) == 0
    assert schema_json.main(["--check"]) == 0
    assert schema_json.main([]) == 0
    out = capsys.readouterr().out
    assert out == path.read_text(encoding="utf-8")
    assert json.loads(out)["title"] == "One line of attempts.jsonl, format version 1"
    assert schema_json.main(["--nonsense"]) == 2
