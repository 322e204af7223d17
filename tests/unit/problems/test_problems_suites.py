import hashlib
import shutil

import pytest
from problem_samples import MODULE

from problems import registry, splits, suites
from problems.errors import ProblemChanged, UnknownProblem


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """A checkout with one file, and that file's hash in place of the pinned one."""
    relative, _ = suites.pinned()["L2_014"]
    path = tmp_path / "checkout" / relative
    path.parent.mkdir(parents=True)
    path.write_text(MODULE)
    pinned = {**suites.pinned(), "L2_014": (relative, hashlib.sha256(MODULE.encode()).hexdigest())}
    monkeypatch.setattr(suites, "pinned", lambda: pinned)
    monkeypatch.setenv(suites.ENVIRONMENT, str(tmp_path / "checkout"))
    return tmp_path / "checkout"


def test_the_pinned_suite_has_its_250_files():
    levels = [name.split("_")[0] for name in suites.pinned()]
    assert {level: levels.count(level) for level in set(levels)} == {"L1": 100, "L2": 100, "L3": 50}
    assert suites.pinned()["L2_012"] == (
        "KernelBench/level2/12_Gemm_Multiply_LeakyReLU.py",
        "0150537a4e53a29b1436d22667aa05b26c30301dd865d5ccf0f929b2c0cc29f6",
    )


def test_without_an_import_the_mend_is_in_the_hint(monkeypatch):
    monkeypatch.delenv(suites.ENVIRONMENT, raising=False)
    with pytest.raises(UnknownProblem) as caught:
        registry.load("kernel:L2_014")
    assert "not imported" in caught.value.message
    assert "RATCHET_KERNELBENCH" in caught.value.hint
    assert suites.suite_keys() == []


def test_an_id_outside_the_suite_is_unknown(monkeypatch):
    monkeypatch.delenv(suites.ENVIRONMENT, raising=False)
    with pytest.raises(UnknownProblem) as caught:
        registry.load("kernel:L2_14")
    assert "kernel:L2_014" in caught.value.hint


def test_an_imported_file_loads_by_its_key(suite):
    problem = registry.load("kernel:L2_014")
    assert (problem.key, problem.title, problem.atol) == ("kernel:L2_014", "Gemm Divide Sum Scaling", 1e-4)
    assert len(suites.suite_keys()) == 250


@pytest.mark.parametrize("name", ["", "KernelBench"])
def test_the_directory_may_be_the_checkout_or_its_inner_folder(suite, name, monkeypatch):
    monkeypatch.delenv(suites.ENVIRONMENT)
    (suite / "KernelBench" / "level1").mkdir()
    assert registry.load("kernel:L2_014", kernelbench_root=suite / name).key == "kernel:L2_014"


def test_a_bare_suite_folder_of_another_name_works(suite, monkeypatch):
    shutil.move(suite / "KernelBench", suite / "copy")
    monkeypatch.setenv(suites.ENVIRONMENT, str(suite / "copy"))
    assert registry.load("kernel:L2_014").root.name.startswith("14_")


def test_a_file_of_another_revision_is_refused(suite):
    path = suite / suites.pinned()["L2_014"][0]
    path.write_text(MODULE + "# later\n")
    with pytest.raises(ProblemChanged) as caught:
        registry.load("kernel:L2_014")
    assert "423217d9" in caught.value.message


def test_a_missing_file_of_the_suite_is_unknown(suite):
    with pytest.raises(UnknownProblem, match="does not exist"):
        registry.load("kernel:L2_013")


def test_the_probe_set_hashes_to_the_pinned_value():
    expected = "961c8cfb1ca3716de899242f2d95963936516ee6e7599cebe41df662a656316b"
    assert splits.verify_probe() == splits.pinned_probe_hash() == expected
    assert splits.keys_hash(reversed(splits.probe_keys())) == expected
    assert len(splits.probe_keys()) == 10
    assert splits.keys_hash(splits.probe_keys()[1:]) != expected


def test_a_changed_probe_set_is_an_error(monkeypatch):
    monkeypatch.setattr(splits, "probe_keys", lambda: ["kernel:L2_014"])
    with pytest.raises(ProblemChanged):
        splits.verify_probe()
