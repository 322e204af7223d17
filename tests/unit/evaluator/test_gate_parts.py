"""Tokens, sources, policies and the advisory scanner."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.errors import UsageError
from evaluator.gate import Severity, has_entry, load_policy, parse_policy, read_source, scan, scan_native, syntax_error
from evaluator.gate.advisory import advise
from evaluator.gate.report import Advisory
from evaluator.gate.tokens import Kind, joined_strings, tokenize
from evaluator.records import Status

KERNEL = 'from torch.utils.cpp_extension import load_inline\next = load_inline(name="k", cpp_sources="int run();")\n'


def texts(source):
    return [t.text for t in tokenize(source)]


def test_comments_vanish_and_code_after_them_stays():
    assert texts("a /* b */ c // d \\\n e\nf /* never closed g") == ["a", "c", "f"]


def test_a_comment_inside_a_string_is_text():
    assert [(t.kind, t.value) for t in tokenize('x = "// not /* a comment";')][2] == (Kind.STRING, "// not /* a comment")


def test_raw_strings_end_at_their_own_delimiter():
    tokens = tokenize('R"ab(x )" )a" // y)ab" z')
    assert [(t.kind, t.text) for t in tokens] == [(Kind.STRING, 'x )" )a" // y'), (Kind.NAME, "z")]


def test_a_splice_inside_a_raw_string_is_put_back():
    tokens = tokenize('R"(a\\\nb)" c')
    assert [t.text for t in tokens] == ["a\\\nb", "c"]
    assert tokens[1].line == 2


def test_a_splice_elsewhere_joins_the_token():
    tokens = tokenize("ab\\\ncd ef")
    assert [(t.text, t.line) for t in tokens] == [("abcd", 1), ("ef", 2)]


def test_directives_and_headers():
    tokens = tokenize('#include <a/b.h>\n # include "c.h"\n#define F(x) x \\\n + 1\nint y;')
    assert [(t.kind, t.text) for t in tokens if t.directive == "include"] == [(Kind.HEADER, "a/b.h"), (Kind.HEADER, "c.h")]
    assert [t.text for t in tokens if t.directive == "define"] == ["F", "(", "x", ")", "x", "+", "1"]
    assert [t.text for t in tokens if not t.directive] == ["int", "y", ";"]


def test_numbers_characters_and_adjacent_strings():
    assert texts("1'000.5e-3f 'a' '\\'' 0x1p3") == ["1'000.5e-3f", "'a'", "'\\''", "0x1p3"]
    assert [t.value for t in joined_strings(tokenize('f("a" "\\x62" R"(c)", "d")'))] == ["abc", "d"]


def test_a_directive_between_two_strings_does_not_hide_the_first():
    assert [t.value for t in joined_strings(tokenize('"one"\n#define X "two"\n"three"'))] == ["one", "two", "three"]


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="aR\"'()\\/*#\n<x%:8u??=; ", max_size=60))
def test_any_text_gives_tokens_of_that_text(source):
    lines = source.count("\n") + 1
    tokens = tokenize(source)
    assert all(1 <= t.line <= lines for t in tokens)
    assert [t.line for t in tokens] == sorted(t.line for t in tokens)
    assert scan_native(source, profile="seed").profile == "seed"


def test_entry_points():
    assert has_entry("class ModelNew:\n    pass\n", "ModelNew")
    assert has_entry("def custom_kernel(data):\n    return data\n", "custom_kernel")
    assert has_entry("class _M:\n    pass\n\n\nModelNew = _M\n", "ModelNew")
    assert has_entry("if True:\n    def custom_kernel(d):\n        return d\n", "custom_kernel")
    assert has_entry("from mine import kernel as custom_kernel\n", "custom_kernel")
    assert not has_entry("# class ModelNew\ns = 'class ModelNew: pass'\n", "ModelNew")
    assert not has_entry("class Outer:\n    class ModelNew:\n        pass\n", "ModelNew")
    with pytest.raises(SyntaxError, match="invalid syntax"):
        has_entry("class ModelNew(:\n", "ModelNew")
    with pytest.raises(SyntaxError, match="null bytes"):
        has_entry("x = 1\0", "ModelNew")


def test_syntax_errors_in_words():
    assert syntax_error("x = 1\n") is None
    assert syntax_error("x = 1\ny = = 2\n") == "SyntaxError: invalid syntax (line 2, column 5): y = = 2"


def test_read_source(tmp_path):
    good = tmp_path / "good.py"
    good.write_bytes("\ufeffx = 'ä'\n".encode())
    assert read_source(good) == "x = 'ä'\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"x = '\xff'", "not UTF-8 (byte 5)"),
        (b"x" * (1 << 20) + b"y", "over 1 MiB"),
        (None, "No such file"),
    ],
)
def test_unreadable_sources_are_usage_errors(tmp_path, content, words):
    path = tmp_path / "candidate.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_source(path)
    assert caught.value.code == 2
    assert words in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.hint != ""


def test_unknown_profile_is_a_usage_error():
    with pytest.raises(UsageError, match="unknown gate profile 'strict'"):
        scan("x = 1", profile="strict", entry="ModelNew")


POLICY = """
name: house
forbid:
  - pattern: torch.compile
    why: the task is about kernels
    instead: write the fused kernel
  - pattern: __syncwarp
ask_first:
  - tokens: "(cudaLaunchAttributeID) <number>"
    why: a launch attribute by its raw constant
  - pattern: cudaFuncSetAttribute
"""


def test_a_policy_forbids_and_asks_first():
    policy = parse_policy(POLICY, name="house.yaml")
    native = "source = r'''\n#include <torch/extension.h>\nauto id = (cudaLaunchAttributeID)  6;\n'''\n"
    report = scan(KERNEL + native, profile="open", entry="ModelNew", policy=policy, advisory="off")
    assert (report.allowed, report.needs_operator, report.policy) == (True, True, "house")
    asked = [f for f in report.findings if f.severity is Severity.ASK]
    assert [(f.rule, f.line) for f in asked] == [("policy", 5)]
    assert "raw constant" in asked[0].text
    refused = scan(KERNEL + "import torch\nf = torch.compile(len)\n", profile="open", entry="ModelNew", policy=policy, advisory="off")
    assert refused.status is Status.FORBIDDEN
    assert "torch.compile: the task is about kernels; instead: write the fused kernel" in refused.reason
    assert scan_native("void f() { __syncwarp(); }", profile="open", policy=policy).allowed is False
    assert scan_native("void f() { cudaFuncSetAttribute(0); }", profile="open", policy=policy).needs_operator is True


def test_a_policy_is_hashed_and_leaves_others_alone(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    assert load_policy(path) == parse_policy(POLICY, name="other name")
    assert len(load_policy(path).sha256) == 64
    assert scan(KERNEL, profile="open", entry="ModelNew", policy=load_policy(path), advisory="off").findings == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("forbid: 3", "lists"),
        ("rules: []", "expected name, forbid and ask_first"),
        ("forbid: [{pattern: a, tokens: b}]", "exactly one of"),
        ("forbid: [{why: x}]", "exactly one of"),
        ("forbid: [{pattern: 3}]", "all texts"),
        ("forbid: [", "policy p"),
    ],
)
def test_malformed_policies_are_usage_errors(text, words):
    with pytest.raises(UsageError, match=words):
        parse_policy(text, name="p")


FAKE_SCANNER = """
import pathlib

def configure_runtime(*, profile):
    assert profile == "sol-execbench"

def analyze_code(code, compute_structural_hash):
    while "stall" in code:
        pass
    return {"classification": pathlib.Path(__file__).with_name("says").read_text(), "matched_patterns": [{"pattern": "SOME_RULE"}]}
"""
"""Stands where the optional package would."""


@pytest.fixture
def fake_scanner(tmp_path, monkeypatch):
    def says(classification):
        (tmp_path / "kernelguard.py").write_text(FAKE_SCANNER if classification else "raise ImportError")
        (tmp_path / "says").write_text(classification)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return says


@pytest.mark.parametrize(
    ("mode", "classification", "allowed", "rules"),
    [
        ("flag", "hacked", True, ["advisory"]),
        ("reject", "hacked", False, ["advisory"]),
        ("reject", "suspicious", True, ["advisory"]),
        ("flag", "valid", True, []),
        ("off", "hacked", True, []),
    ],
)
def test_the_advisory_scanner_advises(fake_scanner, mode, classification, allowed, rules):
    fake_scanner(classification)
    report = scan(KERNEL, profile="open", entry="ModelNew", advisory=mode)
    assert (report.allowed, [f.rule for f in report.findings]) == (allowed, rules)
    assert report.advisory == (
        None if mode == "off" else Advisory(scanner="kernelguard", classification=classification, patterns=("SOME_RULE",))
    )


def test_a_text_that_stalls_the_advisory_scanner_does_not_stall_the_judge(fake_scanner):
    fake_scanner("valid")
    assert advise("stall", mode="reject", timeout_s=0.5) == Advisory(scanner="kernelguard", classification="skipped: too slow")


def test_the_advisory_scanner_is_never_required(fake_scanner):
    fake_scanner("")
    report = scan(KERNEL, profile="open", entry="ModelNew", advisory="reject")
    assert (report.allowed, report.advisory) == (True, None)
    with pytest.raises(UsageError, match="unknown advisory mode"):
        scan(KERNEL, profile="open", entry="ModelNew", advisory="maybe")
