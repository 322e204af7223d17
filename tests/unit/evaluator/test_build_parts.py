"""Flags, requests, cache and toolchain: no compiler runs here."""

import json
import os
import threading
import time
from pathlib import Path

import pytest

from evaluator.build import flags, store, toolchain
from evaluator.build.builder import build_key, first_error
from evaluator.build.cache import Cache, NotRegular, default_root, take_over
from evaluator.build.compiler import CompileError, refuse
from evaluator.build.conversation import Conversation, Ended, Malformed, Silence
from evaluator.build.request import BadRequest, checked, key_of
from evaluator.build.store import Build, Extension
from evaluator.errors import EnvironmentFault
from evaluator.records import Status

REQUEST = {
    "format": 1,
    "name": "ext",
    "sources": [{"file": "main.cpp", "text": "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}"}],
    "headers": {},
    "include_paths": [],
    "cflags": ["-O3"],
    "cuda_cflags": [],
    "ldflags": [],
    "with_cuda": False,
    "python_module": True,
}


def request(**changes):
    return {**REQUEST, **changes}


@pytest.mark.parametrize(
    "flag",
    [
        "-O3",
        "-march=native",
        "-ffast-math",
        "-fopenmp",
        "-funroll-loops",
        "-std=c++17",
        "-mavx2",
        "-mfma",
        "-DN=4",
        "-Wall",
        "-g",
        "-I/usr/include/x",
        "-w",
    ],
)
def test_ordinary_flags_pass(flag):
    assert flags.refused([flag], []) is None


@pytest.mark.parametrize(
    "flag",
    [
        "-fplugin=/x.so",
        "@/etc/passwd",
        "-wrapper",
        "-B/scratch",
        "-specs=x",
        "-o",
        "-o/x",
        "-save-temps",
        "-MD",
        "-E",
        "-x",
        "--sysroot=/x",
        "file.cpp",
    ],
)
def test_flags_that_run_or_read_something_else_are_refused(flag):
    assert flags.refused(["-O2", flag], []) == flag


@pytest.mark.parametrize(
    ("flag", "ok"),
    [
        ("-lm", True), ("-L/usr/lib", True), ("-fopenmp", True), ("-Wl,--as-needed", True), ("-pthread", True), ("x.o", False),
        ("-Wl,-rpath,/x", False), ("-Wl,-T,/x", False), ("-T/x", False), ("-o", False),
    ],
)  # fmt: skip
def test_linker_flags(flag, ok):
    assert (flags.refused([], [flag]) is None) is ok


def test_one_header_for_flags_that_mean_the_same():
    assert flags.header_flags(["-O3", "-march=native"], "c++20") == flags.header_flags(
        ["-march=native", "-O2", "-O3", "-Wall", "-DX=1"], "c++20"
    )
    assert flags.header_flags([], "c++20") == ("-O2", "-std=c++20")
    assert flags.header_flags(["-std=c++17"], "c++20") == ("-O2", "-std=c++17")
    assert flags.header_flags(["-ffast-math", "-fno-fast-math"], "c++20") == ("-O2", "-fno-fast-math", "-std=c++20")
    assert flags.header_flags(["-g"], "c++20") is None, "unknown to the list: compiled without a precompiled header"


def test_a_well_formed_request_passes_unchanged():
    assert checked(request()) is not None
    assert checked(json.loads(json.dumps(request()))) == REQUEST


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../x"}, {"name": "a b"}, {"name": 5}, {"format": 2}, {"cflags": "-O2"}, {"cflags": [1]}, {"with_cuda": 1},
        {"sources": []},        {"sources": [{"file": "../main.cpp", "text": ""}]}, {"sources": [{"file": "main.so", "text": ""}]},
        {"sources": [{"file": "a.cpp"}]},
        {"sources": [{"file": "a.cpp", "text": ""}] * 2}, {"headers": {"relative": {}}}, {"headers": {"/a": {"../../x.h": ""}}},
        {"headers": {"/a": {"/x.h": ""}}}, {"headers": {"/a/../b": {}}}, {"include_paths": ["x"]}, {"ldflags": ["a\0b"]},
        {"sources": [{"file": "a.cpp", "text": "x" * (9 << 20)}]},
    ],
)  # fmt: skip
def test_a_malformed_request_is_refused(change):
    with pytest.raises(BadRequest):
        checked(request(**change))


def test_the_key_covers_everything():
    keys = {
        key_of(request()),
        key_of(request(name="b")),
        key_of(request(cflags=[])),
        key_of(request(python_module=False)),
        key_of(request(ldflags=["-lm"])),
    }
    assert len(keys) == 5
    assert key_of(dict(reversed(list(REQUEST.items())))) == key_of(REQUEST)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cflags": ["-fplugin=x"]}, "'-fplugin=x' is not allowed"),
        ({"with_cuda": True}, "the device is a CPU"),
        ({"sources": [{"file": "main.cpp", "text": "int x;"}]}, "defines no Python module"),
    ],
)
def test_what_is_not_compiled_at_all(change, words):
    with pytest.raises(CompileError, match=words):
        refuse(request(**change))
    refuse(request(python_module=False, sources=[{"file": "main.cpp", "text": "int x;"}]))


def test_the_first_error_is_found():
    text = (
        "Error building extension 'e':\nmain.cpp: In function f:\nmain.cpp:3:5: warning: w\nmain.cpp:4:7: error: 'x' was not declared\nmore"
    )
    assert first_error(text) == "main.cpp:4:7: error: 'x' was not declared"
    assert first_error("Error building extension 'e':\nthe flag '@' is not allowed") == "the flag '@' is not allowed"
    assert first_error("") == "the extension does not compile"


def built(directory=None, **changes):
    extension = Extension(
        name="e", key="k", sha256=store.file_hash(directory / "k.so"), cflags=("-O3",), ldflags=(), header="short", seconds=1.5
    )
    fields = {
        "status": Status.OK,
        "message": "",
        "log": "",
        "directory": None,
        "extensions": (extension,),
        "generated": {"e/main.cpp": "int"},
        "imports": ("triton",),
    }
    return Build(**{**fields, "seconds": 2.0, **changes})


def test_a_kept_build_is_found_again_and_a_damaged_one_is_not(tmp_path):
    cache = Cache(tmp_path / "cache")
    assert store.find(cache, "key") is None
    with cache.fresh() as fresh:
        (fresh / "k.so").write_bytes(b"library")
        kept = store.keep(cache, "key", fresh, built(fresh))
    found = store.find(cache, "key")
    assert found == kept.but(cached=True)
    assert found.directory == tmp_path / "cache" / "builds" / "key"
    (found.directory / "k.so").write_bytes(b"LIBRARY")
    assert store.find(cache, "key") is None
    assert not found.directory.exists()


def test_a_library_is_kept_by_request(tmp_path):
    cache = Cache(tmp_path / "cache")
    (tmp_path / "a.so").write_bytes(b"library")
    store.keep_library(cache, "key", tmp_path / "a.so", "precompiled")
    assert store.find_library(cache, "key", tmp_path / "b.so") == "precompiled"
    assert (tmp_path / "b.so").read_bytes() == b"library"
    (tmp_path / "cache" / "libraries" / "key" / "library.so").write_bytes(b"other")
    assert store.find_library(cache, "key", tmp_path / "c.so") is None
    assert not (tmp_path / "c.so").exists()


def test_the_second_of_two_judges_gets_the_firsts_entry(tmp_path):
    cache = Cache(tmp_path)
    with cache.fresh() as one, cache.fresh() as two:
        (one / "x").write_text("1")
        (two / "x").write_text("2")
        assert cache.publish(one, "kind", "key") == cache.publish(two, "kind", "key")
    assert (tmp_path / "kind" / "key" / "x").read_text() == "1"
    assert list((tmp_path / "fresh").iterdir()) == []


def test_a_fresh_directory_is_removed_when_the_build_fails(tmp_path):
    cache = Cache(tmp_path)
    with pytest.raises(FileNotFoundError), cache.fresh() as fresh:
        (fresh / "a" / "x").touch()
    assert list((tmp_path / "fresh").iterdir()) == []
    assert cache.entry("kind", "key") is None


def test_locks_exclude_and_sharing_does_not(tmp_path):
    cache = Cache(tmp_path)
    with cache.lock("a"), cache.try_lock("a") as free:
        assert not free
    with cache.lock("a", shared=True), cache.lock("a", shared=True), cache.try_lock("a") as free:
        assert not free
    with cache.try_lock("a") as free:
        assert free


def test_only_plain_files_of_bounded_size_are_taken_over(tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"12345")
    assert take_over(source, target, cap_bytes=5) == 5
    assert target.read_bytes() == b"12345"
    with pytest.raises(NotRegular, match="larger than 4"):
        take_over(source, tmp_path / "out2", cap_bytes=4)
    (tmp_path / "link").symlink_to(source)
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo", ".", "missing"):
        with pytest.raises(NotRegular):
            take_over(tmp_path / name, tmp_path / "out3", cap_bytes=100)


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root() == tmp_path / "ratchet"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_root() == Path.home() / ".cache" / "ratchet"


def test_a_cache_that_cannot_be_made_is_an_environment_fault(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFault, match="cannot be made") as caught:
        Cache(tmp_path / "file" / "cache")
    assert caught.value.code == 3


def test_the_standard_is_the_one_torch_asks_for():
    assert toolchain.torch_standard("cflags = ['-std=c++17']") == "c++17"
    assert toolchain.torch_standard("'-std=c++17' ... '-std=c++20'") == "c++20"
    assert toolchain.torch_standard("") == "c++17"


def test_no_compiler_names_the_package(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(EnvironmentFault, match="no C\\+\\+ compiler") as caught:
        toolchain.find_compiler()
    assert "apt-get install g++" in caught.value.hint


def test_the_build_key_covers_source_entry_and_files():
    keys = {
        build_key("a", "ModelNew", {}),
        build_key("b", "ModelNew", {}),
        build_key("a", "custom_kernel", {}),
        build_key("a", "ModelNew", {"t.py": "x"}),
    }
    assert len(keys) == 4
    assert build_key("a", "ModelNew", {}) == build_key("a", "ModelNew", {})


def soon():
    return time.monotonic() + 30


def answer_with(data, close=True):
    talk = Conversation()
    writer = os.dup(talk.theirs[0])
    talk.handed_over()
    os.write(writer, data)
    if close:
        os.close(writer)
    return talk, writer


def test_lines_are_heard_and_the_end_is_told_apart():
    talk, _ = answer_with(b'{"a": 1}\n{"b": 2}\n')
    with talk:
        assert talk.hear(soon()) == {"a": 1}
        assert talk.hear(soon()) == {"b": 2}
        with pytest.raises(Ended):
            talk.hear(soon())


@pytest.mark.parametrize("data", [b"nonsense\n", b"[1]\n", b"[" * 100_000 + b"\n"], ids=["text", "list", "deep"])
def test_lines_that_are_not_ours(data):
    talk = Conversation()
    writer = os.dup(talk.theirs[0])
    talk.handed_over()
    thread = threading.Thread(target=lambda: (os.write(writer, data), os.close(writer)))
    thread.start()
    with talk, pytest.raises(Malformed):
        talk.hear(soon())
    thread.join()


def test_silence_ends_at_the_deadline():
    talk, writer = answer_with(b"", close=False)
    with talk, pytest.raises(Silence):
        talk.hear(0.0)
    os.close(writer)
