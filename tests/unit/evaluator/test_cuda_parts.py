"""The GPU's parts that need no GPU: compiler flags, the driver's absence, and the native loop against a driver that does nothing."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from evaluator.build import flags
from evaluator.devices.cuda import native
from evaluator.devices.cuda.nvcc import Nvcc, find_nvcc
from evaluator.errors import EnvironmentFault

ROOT = Path(__file__).parents[3]
HOPPER = Nvcc(Path("/usr/local/cuda"), "release 13.0", (9, 0))


def refused(*given):
    return HOPPER.refused(given, lambda host: flags.refused(host, []))


@pytest.mark.parametrize(
    "given",
    [
        ["-O3", "--use_fast_math", "-lineinfo", "-std=c++17"],
        ["-gencode=arch=compute_90a,code=sm_90a"],
        ["-gencode", "arch=compute_90a,code=[sm_90a,compute_90a]"],
        ["-arch=sm_90"],
        ["-arch", "sm_90a"],
        ["-Xcompiler", "-fopenmp,-O2"],
        ["-Xptxas=-O3,-v", "--ptxas-options=-dlcm=ca"],
        ["-DTILE=64", '-DNAME="x"', "-UNDEBUG", "-w"],
        ["--expt-relaxed-constexpr", "--expt-extended-lambda", "-maxrregcount=128", "-maxrregcount", "96"],
        ["--threads", "4", "-t=2", "--split-compile=0"],
    ],
)
def test_flags_that_a_kernel_may_ask_for(given):
    assert refused(*given) is None


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["-O3", "-ccbin", "/tmp/evil"], "-ccbin"),
        (["--compiler-bindir=/tmp"], "--compiler-bindir=/tmp"),
        (["-o", "x"], "-o"),
        (["--keep"], "--keep"),
        (["--run"], "--run"),
        (["-optf", "file"], "-optf"),
        (["@file"], "@file"),
        (["-I/proc"], "-I/proc"),
        (["-Xcompiler", "-fplugin=x.so"], "-fplugin=x.so"),
        (["-Xcompiler"], "-Xcompiler"),
        (["-Xptxas", "--input-as-string"], "--input-as-string"),
        (["-Xlinker", "-rpath"], "-Xlinker"),
        (["-gencode", "arch=compute_90,code=sm_90;rm"], "-gencode"),
        (["kernel.cu"], "kernel.cu"),
    ],
)
def test_flags_that_would_run_read_or_write_something_else(given, named):
    assert refused(*given) == named


def command(*given):
    return HOPPER.command(
        source="/s/a.cu", output="/o/a.o", name="n", includes=["-I/i"], flags=given, standard="c++20", host=Path("/usr/bin/g++")
    )


def test_the_leased_device_is_the_target_unless_the_source_names_one():
    assert "-gencode=arch=compute_90a,code=sm_90a" in command("-O3")
    assert "-gencode=arch=compute_90a,code=sm_90a" not in command("-arch=sm_90")
    assert command()[-4:] == ["-c", "/s/a.cu", "-o", "/o/a.o"]
    assert Nvcc(Path("/c"), "v", (8, 0)).target == "-gencode=arch=compute_80,code=sm_80"


def test_the_fingerprint_tells_devices_and_toolkits_apart():
    others = [Nvcc(Path("/usr/local/cuda"), "release 13.0", (8, 9)), Nvcc(Path("/usr/local/cuda"), "release 12.8", (9, 0))]
    assert len({HOPPER.fingerprint, *(other.fingerprint for other in others)}) == 3


def test_a_missing_toolkit_is_named_with_its_mend(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr("evaluator.devices.cuda.nvcc.USUAL", tmp_path)
    find_nvcc.cache_clear()
    with pytest.raises(EnvironmentFault, match="nvcc is not installed") as caught:
        find_nvcc((9, 0))
    assert (caught.value.code, "CUDA_HOME" in caught.value.hint) == (3, True)


DRIVER = """
#include <stdint.h>
int cuEventCreate(void **event, unsigned flags) { static int some; *event = &some; return 0; }
int cuEventRecord(void *event, void *stream) { return 0; }
int cuEventElapsedTime(float *ms, void *begin, void *end) { *ms = 0.25f; return 0; }
int cuGetErrorString(int code, const char **text) { *text = "an illegal memory access was encountered"; return 0; }
int fault = 0;
int cuCtxSynchronize(void) { return fault; }
"""

PROGRAM = """
import ctypes, importlib.machinery, importlib.util, os, sys, threading, time
import torch
from evaluator.protocol.mailbox import Mailbox as Judge
from evaluator.runner import layout
from evaluator.runner.serve import Mailbox, serve

driver = ctypes.CDLL("libcuda.so.1")
loader = importlib.machinery.ExtensionFileLoader("ratchet_loop", sys.argv[1])
module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("ratchet_loop", sys.argv[1], loader=loader))
loader.exec_module(module)

class Inside:
    loop = module
    touched = 0
    def touch(self): Inside.touched += 1
    def canary(self): pass

def forward(x):
    if x[0] < 0: raise ValueError("a negative input")
    if x[0] == 7: return "no tensor"
    if x[0] == 8: return torch.zeros(2)[None]
    return x

judge = Judge()
slots = [(torch.tensor([v, v]),) for v in (1.0, 2.0, -1.0, 7.0, 8.0)]

def run():
    serve(Inside(), Mailbox(judge.request_fd, judge.answer_fd), forward, slots, declared=None)

child = os.fork()
if child == 0:
    run()
    os._exit(10 + Inside.touched)

def ask(operation, slot=0):
    nonce = judge.post(operation, slot)
    deadline = time.monotonic() + 10
    while judge.answer[layout.ECHO] != nonce:
        assert time.monotonic() < deadline
    return judge.code(), judge.event_us()

assert ask(layout.CALL, 0) == (layout.OK, 250.0)
first = judge.outputs()[0]
assert (first.shape, first.dtype, first.nbytes) == ((2,), "float32", 8)
assert ask(layout.CALL, 1) == (layout.OK, 250.0)
assert judge.outputs()[0].address != first.address
assert ask(layout.CALL, 0)[0] == layout.OK and judge.outputs()[0] == first
assert ask(layout.EMPTY)[0] == layout.OK and judge.outputs()[0] == first
assert ask(layout.BARE)[0] == layout.OK
assert ask(layout.TOUCH)[0] == layout.OK
assert ask(layout.CALL, 2)[0] == layout.RAISED and "ValueError: a negative input" in judge.text()
assert ask(layout.CALL, 3)[0] == layout.BAD_OUTPUT and "str, not torch.Tensor" in judge.text()
assert ask(layout.CALL, 4)[0] == layout.OK and judge.outputs()[0].shape == (1, 2)
assert ask(layout.CALL, 1)[0] == layout.OK
assert ask(layout.CALL, 99)[0] == layout.RAISED and "no such slot" in judge.text()
assert ask(layout.LEAVE)[0] == layout.OK
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 11, "one touch, and the loop was left"

ctypes.c_int.in_dll(driver, "fault").value = 700
child = os.fork()
if child == 0:
    run()
    os._exit(0)
assert ask(layout.CALL, 0)[0] == layout.RAISED and "an illegal memory access was encountered (synchronize)" in judge.text()
assert ask(layout.LEAVE)[0] == layout.OK
os.waitpid(child, 0)
print("whole")
"""


def test_the_native_loop_answers_as_the_python_loop_does(tmp_path):
    loop = native.native_loop(tmp_path / "cache")
    assert native.native_loop(tmp_path / "cache") == loop
    (tmp_path / "driver.c").write_text(DRIVER)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", tmp_path / "driver.c"], check=True)
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    environment = {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, tmp_path / "program.py", loop], capture_output=True, text=True, timeout=60, env=environment)
    assert done.stdout.strip() == "whole", done.stderr


def test_a_loop_that_does_not_compile_is_the_machines_fault(tmp_path, monkeypatch):
    broken = tmp_path / "loop.c"
    broken.write_text("int main(")
    monkeypatch.setattr(native, "SOURCE", broken)
    with pytest.raises(EnvironmentFault, match="does not compile") as caught:
        native.native_loop(tmp_path)
    assert caught.value.hint
    assert not list(tmp_path.rglob("*.so"))
