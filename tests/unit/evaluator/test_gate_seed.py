"""The `seed` profile: the frozen protocol's allowlist to the letter."""

import pytest

from evaluator.gate import scan, scan_native
from evaluator.records import Status

LEGIT_NATIVE = '''
import math

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp = "torch::Tensor fused(torch::Tensor x, double slope);"
cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>
__global__ void leaky(const float* x, float* y, int n, float slope) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;  // no stream is ever created
  if (i < n) y[i] = x[i] > 0 ? x[i] : x[i] * slope;
}
torch::Tensor fused(torch::Tensor x, double slope) {
  auto y = torch::empty_like(x);
  cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  leaky<<<(x.numel() + 255) / 256, 256, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), slope);
  return y;
}
"""
ext = load_inline(name="fused", cpp_sources=cpp, cuda_sources=cuda, functions=["fused"], extra_cuda_cflags=["-O3", "--use_fast_math"])


class ModelNew(nn.Module):
    def __init__(self, features, slope):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.slope = slope
        self.scale = 1.0 / math.sqrt(features)
        self.register_buffer("offset", torch.zeros(features))

    def forward(self, x):
        y = torch.addmm(self.linear.bias, x, self.linear.weight.t())
        return ext.fused(y.contiguous() * self.scale, self.slope)
'''

LEGIT_TRITON = """
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 1024}, num_warps=4)], key=["n"])
@triton.jit
def scale(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        scale[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), 2.0)
        return y
"""


@pytest.mark.parametrize("source", [LEGIT_NATIVE, LEGIT_TRITON], ids=["load_inline", "triton"])
def test_the_two_legitimate_forms_pass(source):
    report = scan(source, profile="seed", entry="ModelNew", advisory="off")
    assert report.reason == ""
    assert (report.allowed, report.custom_kernel) == (True, True)


PYTHON = {
    "import os": ("import", "import os"),
    "import time": ("import", "import time"),
    "import threading": ("import", "import threading"),
    "import sys": ("import", "from sys import modules"),
    "import ctypes": ("import", "import ctypes"),
    "import profiler": ("import", "import torch.profiler"),
    "relative import": ("import", "from . import other"),
    "stream": ("attribute", "s = torch.cuda.Stream()"),
    "event": ("attribute", "e = torch.cuda.Event(enable_timing=True)"),
    "graph": ("attribute", "g = torch.cuda.CUDAGraph()"),
    "compile": ("attribute", "f = torch.compile(ModelNew)"),
    "jit": ("attribute", "f = torch.jit.script(ModelNew)"),
    "backends": ("attribute", "x = torch.backends.cudnn.enabled"),
    "tf32": ("monkeypatch", "torch.backends.cuda.matmul.allow_tf32 = True"),
    "matmul precision": ("attribute", "torch.set_float32_matmul_precision('medium')"),
    "seed of the generator": ("attribute", "torch.manual_seed(42)"),
    "profiler": ("attribute", "p = torch.profiler.profile()"),
    "load": ("attribute", "w = torch.load('w.pt')"),
    "save": ("attribute", "torch.save(1, 'w.pt')"),
    "ops": ("attribute", "y = torch.ops.aten.relu(1)"),
    "synchronize": ("attribute", "torch.cuda.synchronize()"),
    "alias": ("attribute", "c = torch.cuda\ns = c.Stream()"),
    "patch": ("monkeypatch", "torch.allclose = print"),
    "patch of another object": ("monkeypatch", "nn.Linear.forward = print"),
    "patch of a class": ("monkeypatch", "ModelNew.forward = print"),
    "dunder": ("attribute", "c = ModelNew.__subclasses__"),
    "code": ("attribute", "c = ModelNew.forward.__code__"),
    "globals": ("attribute", "c = ModelNew.forward.__globals__"),
    "tensor subclass": ("class", "class Lazy(torch.Tensor):\n    pass"),
    "try": ("fallback", "try:\n    x = 1\nexcept Exception:\n    x = 2"),
    "open": ("name", "f = open('x')"),
    "exec": ("name", "exec('x = 1')"),
    "getattr": ("name", "s = getattr(torch, 'compile')"),
    "setattr": ("name", "setattr(torch, 'allclose', print)"),
    "globals()": ("name", "g = globals()"),
    "__import__": ("name", "o = __import__('os')"),
    "unlisted builtin": ("name", "v = vars(torch)"),
    "del": ("statement", "x = 1\ndel x"),
    "async": ("statement", "async def f():\n    pass"),
    "build directory": ("load_inline", "e = load_inline(name='e', cpp_sources='int f();', build_directory='/tmp')"),
    "linker flags": ("load_inline", "e = load_inline(name='e', cpp_sources='int f();', extra_ldflags=['-ldl'])"),
    "macro from a flag": ("compiler-flag", "e = load_inline(name='e', cpp_sources='int f();', extra_cflags=['-DX=fork'])"),
    "computed flag": ("compiler-flag", "e = load_inline(name='e', cpp_sources='int f();', extra_cflags=['-' + 'DX'])"),
}


@pytest.mark.parametrize("name", PYTHON)
def test_what_is_not_listed_is_refused(name):
    rule, text = PYTHON[name]
    report = scan(f"{LEGIT_NATIVE}\n{text}\n", profile="seed", entry="ModelNew", advisory="off")
    assert rule in {f.rule for f in report.findings}
    assert report.status is Status.FORBIDDEN


NATIVE = {
    "Python C API": ("python-c-api", "void f() { PyRun_SimpleString(0); }"),
    "Python object": ("python-c-api", "PyObject* p;"),
    "pybind": ("python-c-api", 'void f() { py::module_::import("time"); }'),
    "dlsym": ("dynamic-loading", "void* f() { return dlsym(0, 0); }"),
    "dlfcn header": ("header", "#include <dlfcn.h>\n"),
    "create a stream": ("stream", "void f(cudaStream_t* s) { cudaStreamCreate(s); }"),
    "pool stream": ("stream", "auto s = c10::cuda::getStreamFromPool();"),
    "event": ("event", "cudaEvent_t e;"),
    "graph": ("graph", "cudaGraph_t g;"),
    "thread": ("thread", "void f() { std::thread t([] {}); }"),
    "thread header": ("header", "#include <thread>\n"),
    "pthread": ("thread", "void f() { pthread_create(0, 0, 0, 0); }"),
    "file": ("host-syscall", 'void f() { fopen("x", "r"); }'),
    "stream of a file": ("file-io", "std::ifstream in;"),
    "system headers": ("header", "#include <unistd.h>\n"),
    "clock": ("clock", "auto t = std::chrono::steady_clock::now();"),
    "exit": ("host-syscall", "void f() { _exit(0); }"),
    "tf32": ("numerics-flags", "void f() { at::globalContext().setAllowTF32CuBLAS(true); }"),
    "host path": ("file-io", 'const char* p = "/proc/self/maps";'),
    "everything open refuses": ("process", "int f() { return fork(); }"),
}


@pytest.mark.parametrize("name", NATIVE)
def test_banned_native_tokens(name):
    rule, text = NATIVE[name]
    report = scan_native(text, profile="seed")
    assert rule in {f.rule for f in report.findings}
    assert report.allowed is False


def test_what_load_inline_generates_passes():
    generated = (
        "#include <torch/extension.h>\ntorch::Tensor fused(torch::Tensor x);\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\nm.def("fused", torch::wrap_pybind_function(fused), "fused");\n}\n'
    )
    assert scan_native(generated, profile="seed").findings == ()


def test_a_custom_kernel_must_exist():
    source = (
        "import torch\nimport torch.nn as nn\n\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
    )
    assert scan(source, profile="seed", entry="ModelNew").status is Status.NO_CUSTOM_KERNEL
