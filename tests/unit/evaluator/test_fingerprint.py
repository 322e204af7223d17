"""What a measurement was made with."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator import fingerprint as module
from evaluator.fingerprint import fingerprint, installed, own_files, processor_name


def test_every_fact_is_there_and_the_hash_is_over_them():
    facts = fingerprint()
    assert set(facts) == {
        "sha256", "evaluator", "python", "torch", "triton", "numpy", "scipy", "pyyaml", "compiler", "kernel", "device", "bwrap", "optional",
    }  # fmt: skip
    rest = {k: v for k, v in facts.items() if k != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    assert facts["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert facts["bwrap"].startswith("bubblewrap ")
    assert set(facts["optional"]) == {"kernelguard"}


def test_torch_is_not_imported():
    code = "import sys; from evaluator.fingerprint import fingerprint; print(fingerprint()['torch'], 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(module.__file__).parents[1])
    assert done.stdout.split() == [installed("torch"), "False"]


@pytest.fixture
def copy(tmp_path):
    root = tmp_path / "evaluator"
    shutil.copytree(Path(module.__file__).parent, root)
    return root


def test_the_same_files_give_the_same_hash_wherever_they_lie(copy):
    assert own_files(copy) == own_files(Path(module.__file__).parent)


def test_a_changed_added_or_renamed_file_changes_it(copy):
    before = own_files(copy)
    (copy / "sandbox" / "filters" / "run-x86_64.bpf").write_bytes(b"0" * 8)
    changed = own_files(copy)
    (copy / "new.py").touch()
    added = own_files(copy)
    (copy / "new.py").rename(copy / "newer.py")
    assert len({before, changed, added, own_files(copy)}) == 4


def test_bytecode_does_not_count(copy):
    before = own_files(copy)
    (copy / "__pycache__").mkdir(exist_ok=True)
    (copy / "__pycache__" / "x.py").write_text("1")
    (copy / "x.pyc").write_text("1")
    assert own_files(copy) == before


def test_what_is_absent_is_said_to_be(tmp_path, monkeypatch):
    assert installed("no-such-distribution-here") == "absent"
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("RATCHET_BWRAP", raising=False)
    assert module._compiler() == "absent"
    assert module._bwrap() == "absent"


def test_the_processors_name(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nmodel\t\t: 1\nmodel name\t: Some CPU @ 3 GHz\n")
    assert processor_name(file) == "Some CPU @ 3 GHz"
    assert processor_name(tmp_path / "none") != ""
