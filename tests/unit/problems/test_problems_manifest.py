import shutil
import subprocess
import sys

import pytest

from problems import manifest
from problems.errors import ProblemChanged

LOAD = """import sys
from problems import errors, registry
try:
    print(registry.load(sys.argv[1]).sha256)
except errors.ProblemError as error:
    print(error.code, error.message, error.hint)
"""


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(manifest.PACKAGE, tmp_path / "problems", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "problems"


def load(copy, key):
    return subprocess.run([sys.executable, "-c", LOAD, key], cwd=copy.parent, capture_output=True, text=True, check=True).stdout


def test_the_manifest_is_current():
    assert manifest.manifest_path().read_text(encoding="utf-8") == manifest.render()
    manifest.verify()


def test_the_manifest_lists_problems_stand_ins_and_data():
    names = set(manifest.read())
    assert {"builtin/scan.py", "builtin/scan.yml", "builtin/eigh/reference.py", "compatibility/utils.py", "data/eigh_cases.json"} <= names


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("builtin/scan.py", "builtin:scan"),
        ("builtin/scan.yml", "builtin:scan"),
        ("builtin/eigh/reference.py", "builtin:eigh"),
        ("builtin/eigh/task.yml", "builtin:eigh"),
        ("builtin/eigh/ratchet.yml", "builtin:eigh"),
        ("compatibility/utils.py", "builtin:eigh"),
    ],
)
def test_a_changed_file_is_found_on_load(copy, file, key):
    (copy / file).write_text((copy / file).read_text() + "\n")
    answer = load(copy, key)
    assert answer.startswith(f"3 problems/{file} differs from MANIFEST.sha256")
    assert "python -m problems.manifest --write" in answer
    assert len(load(copy, "builtin:mlp")) == 65


def test_an_unlisted_sidecar_is_found_on_load(copy):
    (copy / "MANIFEST.sha256").write_text("".join(f"{h}  {n}\n" for n, h in manifest.read().items() if n != "builtin/scan.yml"))
    assert "problems/builtin/scan.yml is not in MANIFEST.sha256" in load(copy, "builtin:scan")


def test_verify_finds_missing_and_added_files(copy):
    (copy / "builtin" / "mlp.yml").unlink()
    with pytest.raises(ProblemChanged, match=r"mlp\.yml is missing"):
        manifest.verify(copy)
    shutil.copy(manifest.PACKAGE / "builtin" / "mlp.yml", copy / "builtin")
    (copy / "builtin" / "new.py").write_text("x = 1\n")
    with pytest.raises(ProblemChanged, match=r"new\.py is not in MANIFEST"):
        manifest.verify(copy)


def test_a_lost_manifest_is_an_error(copy):
    (copy / "MANIFEST.sha256").unlink()
    assert load(copy, "builtin:scan").startswith("3 ")


def test_the_command_writes_and_verifies(copy):
    (copy / "builtin" / "mlp.yml").write_text("title: Other\n")
    command = [sys.executable, "-m", "problems.manifest"]
    before = subprocess.run(command, cwd=copy.parent, capture_output=True, text=True, check=False)
    assert (before.returncode, "mlp.yml differs" in before.stderr) == (3, True)
    assert subprocess.run([*command, "--write"], cwd=copy.parent, check=False).returncode == 0
    assert subprocess.run(command, cwd=copy.parent, check=False).returncode == 0
    assert subprocess.run([*command, "--wrong"], cwd=copy.parent, capture_output=True, check=False).returncode == 2
