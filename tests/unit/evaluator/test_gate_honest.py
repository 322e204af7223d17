"""Honest spellings that public detectors refuse or flag (FP01-FP24 of the catalogue): `open` accepts every one."""

import pytest

from evaluator.gate import Severity, scan

KERNEL = '''
import torch
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline
_source = r"""
#include <torch/extension.h>
torch::Tensor run(torch::Tensor x) { return x.contiguous(); }
"""
_ext = load_inline(name="k", cpp_sources=_source, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return _ext.run(x)
'''

NATIVE_HEAD = 'from torch.utils.cpp_extension import load_inline\nsource = r"""\n#include <torch/extension.h>\n'
NATIVE_TAIL = '\n"""\next = load_inline(name="k", cuda_sources=source, cpp_sources="", functions=["run"])\n'


def native(body):
    return NATIVE_HEAD + body + NATIVE_TAIL


HONEST = {
    "FP01 current stream, streaming loads and the word in comments": native(
        """
        // streaming loads hide the latency of each stream of tiles
        #include <c10/cuda/CUDAStream.h>
        __global__ void k(const float4* x) { float4 v = __ldcs(x); }
        void run(at::Tensor x) { cudaStream_t stream = at::cuda::getCurrentCUDAStream(); k<<<1, 32, 0, stream>>>(nullptr); }
        """
    ),
    "FP01 own side stream, joined before the return": native(
        """
        void run(at::Tensor x) {
          cudaStream_t side; cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
          cudaEvent_t done; cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
          cudaEventRecord(done, side); cudaStreamWaitEvent(0, done, 0); cudaDeviceSynchronize();
        }
        """
    ),
    "FP02 optional import, build retry, autotune guard": KERNEL
    + """
import subprocess
try:
    import triton
except ImportError:
    triton = None
try:
    _fast = load_inline(name="f", cpp_sources=_source, functions=["run"], extra_cflags=["-march=native"])
except (RuntimeError, subprocess.CalledProcessError):
    _fast = _ext
""",
    "FP03 two-pass reduction and empty bodies": KERNEL
    + '''
class Config:
    pass


_note = """
/* a two-pass reduction: the first pass writes partials; then (x) the second reads { them } */
"""
''',
    "FP04 sidecar source": """
from pathlib import Path
from torch.utils.cpp_extension import load
ext = load(name="k", sources=[str(Path(__file__).with_name("kernel.cu"))])
""",
    "FP04 runtime compilation": """
import torch
from cuda.bindings import nvrtc
_, program = nvrtc.nvrtcCreateProgram(b"extern \\"C\\" __global__ void k() {}", b"k.cu", 0, [], [])
""",
    "FP04 a Python DSL": """
import cutlass.cute as cute


@cute.kernel
def k(x):
    return None
""",
    "FP05 locks around a build": KERNEL
    + """
import threading
_lock = threading.Lock()


def build():
    with _lock:
        return _ext
""",
    "FP05 plain threads, Python and native": native(
        """
        #include <thread>
        #include <vector>
        void run(at::Tensor x) {
          std::vector<std::thread> team;
          for (int i = 0; i < 4; ++i) team.emplace_back([=] { (void)i; });
          for (auto& t : team) t.join();
        }
        """
    )
    + "\nimport threading\nworker = threading.Thread(target=print)\n",
    "FP06 split-precision emulation": KERNEL
    + """
def split(x):
    high = x.half()
    return high, (x - high.float()).half()
""",
    "FP07 torch.nn.functional imported and used": KERNEL + "\n\ndef epilogue(x):\n    return F.gelu(x)\n",
    "FP08 plans and workspaces from a dict": KERNEL
    + """
_plans = {}


def plan(x):
    key = (x.shape, x.data_ptr())
    if key not in _plans:
        _plans[key] = torch.empty_like(x)
    return _plans[key]
""",
    "FP09 the answer is x @ x.T": KERNEL + "\n\ndef gram(x):\n    return x @ x.T\n",
    "FP10 cast-only and any/all reductions": KERNEL + "\n\ndef anything(x):\n    return x.to(torch.float32), x.any(), x.all()\n",
    "FP11 a local stub event": KERNEL
    + """
import time


class _StubEvent:
    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, other):
        return (other.at - self.at) * 1e3


Event = torch.cuda.Event if torch.cuda.is_available() else _StubEvent
""",
    "FP13 module discovery and templated source": KERNEL
    + """
import importlib
import importlib.util
if importlib.util.find_spec("triton") is not None:
    triton = importlib.import_module("triton")
_template = "def tile(x):\\n    return x * {factor}\\n"
exec(_template.format(factor=4))
""",
    "FP14 a graph that copies its inputs in": KERNEL
    + """
class Graphed(torch.nn.Module):
    def forward(self, x):
        if not hasattr(self, "graph"):
            self.static = x.clone()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = _ext.run(self.static)
        self.static.copy_(x)
        self.graph.replay()
        return self.out
""",
    "FP15 pointer equality": KERNEL + "\n\ndef same(x, y):\n    return x.data_ptr() == y.data_ptr()\n",
    "FP16 a disclaimer": '"""No torch.compile, no CUDA graphs, no time.perf_counter patching, no ptrace, no fork()."""\n' + KERNEL,
    "FP17 FP18 debugging names": KERNEL + "\n\ndef ring_allreduce_test(x):\n    return x\n",
    "FP22 make_stream and create_stream as ordinary names": KERNEL
    + "\n\ndef make_stream(x):\n    return x\n\n\ncreate_stream = make_stream\n",
    "FP23 ordinary substrings": native(
        """
        // system-wide forks of the algorithm; ptrace-like tracing is off; execution clones the tensor
        struct Pool { void fork(int) {} void system(int) {} };
        void run(at::Tensor x) {
          Pool pool; pool.fork(1); pool.system(2);
          auto y = x.clone(); auto z = at::clone(x); int forked = 0, subsystem = 1, write = 2; (void)forked; (void)subsystem; (void)write;
          throw std::system_error();
        }
        """
    ),
    "FP24 a debug print about the benchmark": KERNEL
    + '\n\ndef forward_debug(x):\n    print("benchmark score so far", 1.0)\n    return x\n',
    "native timing by calling clocks": native(
        """
        #include <chrono>
        #include <time.h>
        void run(at::Tensor x) {
          timespec ts; if (clock_gettime(CLOCK_MONOTONIC, &ts)) { return; }
          auto t = std::chrono::steady_clock::now(); (void)t;
        }
        """
    ),
    "inline PTX": native('__global__ void run() { unsigned r; asm volatile("mov.u32 %0, %%laneid;" : "=r"(r)); }'),
    "the processor's features": KERNEL + '\n\nfast = "avx512" in open("/proc/cpuinfo").read()\n',
    "driver entry points by dlsym": native(
        """
        #include <dlfcn.h>
        void run(at::Tensor x) { void* h = dlopen("libcuda.so.1", RTLD_NOW); void* f = dlsym(h, "cuTensorMapEncodeTiled"); (void)f; }
        """
    ),
    "writes into fresh tensors and own objects": KERNEL
    + """
import numpy as np


def fill(x):
    y = torch.zeros(8, 8)
    y[:4] = x[:4]
    y.requires_grad = False
    table = np.arange(10)
    table[2] += 1
    weight = torch.nn.Parameter(torch.ones(3))
    weight.data = weight.data.contiguous()
    net = torch.nn.Linear(3, 3)
    net.weight.data[0] = 1.0
    net.scale = 3
    return y
""",
    "numerics flags": KERNEL + "\n\ntorch.backends.cuda.matmul.allow_tf32 = False\n",
    "token pasting for instantiation": native("#define KERNEL(type) void run_##type(type* x) { (void)x; }\nKERNEL(float)\nKERNEL(double)"),
}


@pytest.mark.parametrize("name", HONEST, ids=lambda name: name.split(" ", 1)[0] + "-" + name.split(" ", 1)[1][:24].replace(" ", "_"))
def test_open_accepts(name):
    report = scan(HONEST[name], profile="open", entry="ModelNew")
    assert report.reason == ""
    assert report.allowed is True
    assert [f for f in report.findings if f.severity is Severity.REFUSE] == []


def test_the_list_covers_the_table():
    covered = {word for name in HONEST for word in name.split() if word.startswith("FP")}
    static = {f"FP{n:02d}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18, 22, 23, 24)}
    assert covered == static  # the others (FP12, FP19, FP20, FP21) are about run time, scores and judges, not about text
