"""Bounds on untrusted text, prompts, and the demo's candidates as texts."""

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from port import FakePort, Journal

from agents.bounds import bounded, clip, line, plain
from agents.prompting import FOLDER, BadPrompt, prompt_facts, system_prompt
from agents.settings import BadSetting, agent_settings


def test_escapes_and_controls_are_gone():
    assert plain("a\x1b[31mb\x1b[0m\x1b]0;title\x07c\x00d\r\ne\tf\x9bg") == "abcd\ne\tfg"


@given(st.text(), st.integers(0, 300))
def test_clip_is_bounded(text, limit):
    assert len(clip(text, limit)) <= limit


@given(st.text(alphabet=st.characters(max_codepoint=0x2FF)))
def test_a_line_is_one_line_without_controls(text):
    result = line(text)
    assert len(result) <= 200
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in result)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=3000), lambda inner: st.lists(inner, max_size=20), max_leaves=60))
def test_answers_are_bounded(value):
    content = bounded({"value": value}, limit=4_000)
    assert len(json.dumps(content, ensure_ascii=False)) <= 4_000


def test_a_clipped_text_keeps_head_and_tail():
    text = clip("a" * 500 + "b" * 500, 200)
    assert text.startswith("aaa")
    assert text.endswith("bbb")
    assert "characters left out" in text


@pytest.mark.parametrize("role", ["orchestrator", "idea", "worker", "episode"])
def test_prompts_are_filled_whole(role):
    prompt = system_prompt(role, prompt_facts(FakePort(Journal().begin()).state))
    assert "{{" not in prompt
    assert "`builtin:scan`" in prompt
    assert "you can instead" in prompt


def test_a_prompt_that_is_missing_or_asks_for_the_unknown_is_an_error(tmp_path):
    with pytest.raises(BadPrompt, match=r"idea\.md cannot be read") as caught:
        system_prompt("idea", {}, folder=tmp_path)
    assert caught.value.code == 3
    (tmp_path / "idea.md").write_text("{{rules}} {{moon}}")
    (tmp_path / "rules.md").write_text("none")
    with pytest.raises(BadPrompt, match=r"idea\.md asks for unknown facts: moon"):
        system_prompt("idea", {}, folder=tmp_path)


def test_a_setting_of_a_wrong_type_is_named():
    with pytest.raises(BadSetting, match=r"agents\.n is 0"):
        agent_settings({"agents": {"n": 0}})


@pytest.mark.parametrize("path", sorted((FOLDER.parent / "sessions" / "demo").glob("*.py")), ids=lambda p: p.stem)
def test_every_demo_candidate_answers_with_the_same_signature(path):
    tree = ast.parse(path.read_text())
    model = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    methods = {f.name: [a.arg for a in f.args.args] for f in model.body if isinstance(f, ast.FunctionDef)}
    assert model.name == "ModelNew"
    assert methods == {"__init__": ["self", "features"], "forward": ["self", "x", "gate"]}
