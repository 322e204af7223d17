"""Bright lines of the `open` profile: each spelling is refused under its rule, or flagged where it is only odd."""

import pytest

from evaluator.gate import Severity, scan, scan_native
from evaluator.records import Status

KERNEL = 'import torch\nfrom torch.utils.cpp_extension import load_inline\next = load_inline(name="k", cpp_sources="int run();")\n'

PYTHON = {
    "attribute": ("timing-write", "import time\ntime.perf_counter = lambda: 0.0\n"),
    "alias of a module": ("timing-write", "import time as t\nclock = t\nclock.perf_counter_ns = int\n"),
    "setattr": ("timing-write", "import time\nsetattr(time, 'perf_' + 'counter', lambda: 0.0)\n"),
    "setattr in a loop": (
        "timing-write",
        "import time\nfor m, n in ((time, 'perf_counter'), (time, 'monotonic')):\n    setattr(m, n, float)\n",
    ),
    "unknown name": ("timing-write", "import time\nsetattr(time, input(), float)\n"),
    "module dictionary": ("timing-write", "import time\nvars(time)['perf_counter'] = float\n"),
    "__dict__ update": ("timing-write", "import time\ntime.__dict__.update(perf_counter=float)\n"),
    "object.__setattr__": ("timing-write", "import time\nobject.__setattr__(time, 'perf_counter', float)\n"),
    "sys.modules": ("timing-write", "import sys\nsys.modules['time'].perf_counter = float\n"),
    "import by name": ("timing-write", "__import__('ti' + 'me').perf_counter = float\n"),
    "importlib": ("timing-write", "import importlib\nm = importlib.import_module('time')\nm.monotonic = float\n"),
    "default argument": ("timing-write", "import time\n\n\ndef patch(m=time):\n    m.perf_counter = float\n"),
    "event class": ("timing-write", "import torch\ntorch.cuda.Event = object\n"),
    "event method": ("timing-write", "import torch\nE = torch.cuda.Event\nE.elapsed_time = lambda self, other: 0.0\n"),
    "class of an event": ("timing-write", "import torch\ntype(torch.cuda.Event()).record = print\n"),
    "__class__ of an event": ("timing-write", "import torch\ntorch.cuda.Event().__class__.record = print\n"),
    "getattr with a literal": ("timing-write", "import torch\ngetattr(torch, 'cuda').synchronize = int\n"),
    "del": ("timing-write", "import time\ndel time.perf_counter\n"),
    "with target": ("timing-write", "import time\nwith open('x') as time.perf_counter:\n    pass\n"),
    "comparison": ("library-write", "import torch\ntorch.allclose = lambda *a, **k: True\n"),
    "assert_close": ("comparison-write", "import torch.testing\ntorch.testing.assert_close = print\n"),
    "module call": ("library-write", "import torch.nn as nn\nnn.Module.__call__ = print\n"),
    "mock": ("timing-write", "from unittest import mock\nmock.patch('time.perf_counter', float).start()\n"),
    "mock object": ("timing-write", "import time\nfrom unittest.mock import patch\npatch.object(time, 'monotonic', float).start()\n"),
    "builtins": ("evaluator", "import builtins\nbuiltins.print = id\n"),
    "main module": ("evaluator", "import __main__\n__main__.median = min\n"),
    "main through sys.modules": ("evaluator", "import sys\nm = sys.modules['__main__']\nm.median = min\n"),
    "evaluator": ("evaluator", "from evaluator.runner import serve\n"),
    "replaced module": ("evaluator", "import sys\nsys.modules['time'] = object()\n"),
    "reference class": ("reference-write", "Model.forward = print\n"),
    "reference through globals": ("reference-write", "m = globals()['Model']\nm.forward = print\n"),
    "code object": ("code-replacement", "def f():\n    return 1\n\n\nf.__code__ = (lambda: 2).__code__\n"),
    "fork": ("process", "import os\nos.fork()\n"),
    "fork from import": ("process", "from os import fork as spoon\nspoon()\n"),
    "fork by reference": ("process", "import os\nstart = os.fork\n"),
    "system": ("process", "import os\ngetattr(os, 'sys' + 'tem')('true')\n"),
    "subprocess": ("process", "import subprocess\nsubprocess.run(['true'])\n"),
    "multiprocessing": ("process", "from multiprocessing import Process\nProcess(target=print).start()\n"),
    "own memory file": ("process-memory", "f = open('/proc/self/mem', 'r+b')\n"),
    "memory file in pieces": ("process-memory", "p = '/proc/'\nf = open(p + 'self' + '/mem', 'r+b')\n"),
    "memory file by join": ("process-memory", "f = open('/'.join(['', 'proc', '1', 'mem']), 'rb')\n"),
    "memory file by f-string": ("process-memory", "import os\nf = open(f'/proc/{os.getppid()}/mem', 'rb')\n"),
    "descriptors": ("descriptor-scan", "import os\nfor n in os.listdir('/proc/self/fd'):\n    pass\n"),
    "dup2": ("descriptor-scan", "import os\nos.dup2(3, 1)\n"),
    "raw write": ("descriptor-scan", "import os\nos.write(3, b'{}')\n"),
    "ctypes ptrace": ("process-memory", "import ctypes\nctypes.CDLL(None).ptrace(0)\n"),
    "ctypes syscall": ("raw-syscall", "import ctypes\nctypes.CDLL('libc.so.6').syscall(101)\n"),
    "blob to exec": ("opaque-code", "import base64\nexec(base64.b64decode('cHJpbnQoKQ=='))\n"),
    "blob in a literal": ("opaque-code", f"data = '{'QUJD' * 500}'\nexec(str(len(data)))\n"),
    "blob of bytes": ("opaque-code", f"data = b'{'A b' * 600}'\neval('1')\n"),
    "marshal": ("opaque-code", "import marshal\nmarshal.loads(b'')\n"),
    "library from a written file": ("opaque-code", "import ctypes\npath = '/tmp/x.so'\nctypes.CDLL(path)\n"),
    "library beside the source": ("opaque-code", "import torch\ntorch.ops.load_library('./x.so')\n"),
}

NATIVE = {
    "ptrace": ("process-memory", "long f() { return ptrace(0, 0, 0, 0); }"),
    "ptrace header": ("process-memory", "#include <sys/ptrace.h>\n"),
    "process_vm": ("process-memory", "auto f = &process_vm_readv;"),
    "fork": ("process", "int f() { return fork(); }"),
    "std::system": ("process", 'int f() { return std::system("true"); }'),
    "global system": ("process", 'int f() { return ::system("true"); }'),
    "fork by pointer": ("process", "int (*f)() = fork;"),
    "fork by address": ("process", "auto f = &fork;"),
    "exec": ("process", "void f() { execve(0, 0, 0); }"),
    "spawn": ("process", "#include <spawn.h>\nvoid f() { posix_spawnp(0, 0, 0, 0, 0, 0); }"),
    "syscall": ("raw-syscall", "long f() { return syscall(39); }"),
    "syscall number": ("raw-syscall", "int n = __NR_getpid;"),
    "inline syscall": ("raw-syscall", 'void f() { asm volatile("mov $39, %%rax\\n\\tsyscall" ::: "rax"); }'),
    "incbin": ("opaque-code", '__asm__(".incbin \\"x.bin\\"");'),
    "embed": ("opaque-code", "const unsigned char b[] = {\n#embed <x.bin>\n};"),
    "memfd": ("opaque-code", 'int f() { return memfd_create("x", 0); }'),
    "mprotect": ("code-patching", "void f(void* p) { mprotect(p, 4096, 7); }"),
    "loader tables": ("code-patching", "void f() { dl_iterate_phdr(0, 0); }"),
    "vdso": ("code-patching", "auto p = getauxval(AT_SYSINFO_EHDR);"),
    "clock defined": ("clock-redefined", 'extern "C" int clock_gettime(clockid_t c, timespec* t) noexcept { return 0; }'),
    "clock attribute": ("clock-redefined", 'int gettimeofday(timeval* t, void* z) __attribute__((visibility("default"))) { return 0; }'),
    "clock macro": ("clock-redefined", "#define clock_gettime mine\n"),
    "clock alias": ("clock-redefined", 'int mine(int, void*) __asm__("clock_gettime");'),
    "clock looked up": ("clock-redefined", 'auto f = dlsym(RTLD_NEXT, "clock_" "gettime");'),
    "clock address": ("clock-redefined", "void** slot = (void**)&clock_gettime;"),
    "C++ clock": ("clock-redefined", "std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept { return {}; }"),
    "event time": ("clock-redefined", 'extern "C" cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) { return 0; }'),
    "Python attribute": ("timing-write", 'void f(py::object t) { t.attr("perf_counter") = 0; }'),
    "memory file": ("process-memory", 'int f() { return open("/proc/" "self/mem", 2); }'),
    "escaped memory file": ("process-memory", 'int f() { return open("\\x2fproc/self/m\\145m", 2); }'),
    "descriptors": ("descriptor-scan", 'auto d = opendir("/proc/self/fd");'),
    "dup2": ("descriptor-scan", "void f() { dup2(3, 1); }"),
    "pasted": ("process-memory", "#define GLUE(a, b) a##b\nlong f() { return GLUE(pt, race)(0); }"),
    "pasted twice": (
        "process-memory",
        "#define A pt\n#define CAT(a, b) a ## b\n#define XCAT(a, b) CAT(a, b)\nlong f() { return XCAT(A, race)(0); }",
    ),
    "pasted by digraph": ("process-memory", "%:define GLUE(a, b) a%:%:b\nlong f() { return GLUE(ptr, ace)(0); }"),
    "pasted with varargs": ("process-memory", "#define GLUE(a, ...) a##__VA_ARGS__\nlong f() { return GLUE(pt, race)(0); }"),
    "spliced": ("process-memory", "long f() { return ptr\\\nace(0); }"),
    "after a comment trick": ("process-memory", "// one line \\\n still a comment\nlong f() { /* ' */ return ptrace(0); } // '"),
    "after a raw string trick": ("process-memory", 'const char* s = R"x()x\\\n")x"; long n = ptrace(0); const char* t = R"x()x";'),
    "trigraph": ("trigraph", "??=define X 1\n"),
    "host header": ("outside-header", '#include "/etc/passwd"\n'),
}


@pytest.mark.parametrize("name", PYTHON)
def test_python_bright_lines(name):
    rule, text = PYTHON[name]
    report = scan(KERNEL + text, profile="open", entry="ModelNew", advisory="off")
    refused = {f.rule for f in report.findings if f.severity is Severity.REFUSE}
    assert rule in refused
    assert report.allowed is False
    assert report.status is Status.FORBIDDEN


@pytest.mark.parametrize("name", NATIVE)
def test_native_bright_lines(name):
    rule, text = NATIVE[name]
    report = scan_native(text, profile="open")
    assert rule in {f.rule for f in report.findings if f.severity is Severity.REFUSE}
    assert report.status is Status.FORBIDDEN


@pytest.mark.parametrize("name", [n for n in NATIVE if "?" not in NATIVE[n][1]])
def test_native_bright_lines_inside_python_strings(name):
    rule, text = NATIVE[name]
    source = f"{KERNEL}source = {text!r}\nmore = load_inline(name='m', cpp_sources='#include <torch/extension.h>\\n' + source)\n"
    report = scan(source, profile="open", entry="ModelNew", advisory="off")
    assert rule in {f.rule for f in report.findings if f.severity is Severity.REFUSE}


def test_comments_and_plain_strings_of_native_code_do_not_match():
    text = '// ptrace(0); fork();\n/* execve */ const char* s = "we do not fork() or ptrace here"; const char* r = R"(system("x"))";'
    assert scan_native(text, profile="open").findings == ()


def test_the_line_of_a_native_finding_is_that_of_the_candidate():
    source = KERNEL + 'source = """\n#include <torch/extension.h>\n\nint f() { return fork(); }\n"""\n'
    report = scan(source, profile="open", entry="ModelNew", advisory="off")
    assert [(f.rule, f.line) for f in report.findings] == [("process", 7)]
    assert report.reason == "line 7: fork: starting processes is not a kernel's work (process)"


def test_split_tokens_are_caught_in_the_generated_source():
    source = (
        KERNEL + "a, b = 'for', 'k'\nparts = [a, b]\nbody = '#include <torch/extension.h>\\nint f() { return %s(); }' % ''.join(parts)\n"
    )
    assert scan(source, profile="open", entry="ModelNew", advisory="off").allowed is True
    assert scan_native("#include <torch/extension.h>\nint f() { return fork(); }", profile="open").allowed is False


def test_odd_things_are_flagged_and_allowed():
    source = (
        KERNEL
        + "import sys\nimport gc\nimport torch\nframe = sys._getframe(1)\nseen = gc.get_objects()\ntorch.backends.cudnn.allow_tf32 = True\n"
    )
    report = scan(source, profile="open", entry="ModelNew", advisory="off")
    assert report.allowed is True
    assert {f.rule for f in report.findings} == {"reads-frames", "numerics-flags"}
    assert {f.severity for f in report.findings} == {Severity.FLAG}
    assert report.status is Status.OK


def test_reference_operations_alone_are_no_custom_kernel():
    source = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
    report = scan(source, profile="open", entry="ModelNew")
    assert (report.allowed, report.custom_kernel, report.status) == (False, False, Status.NO_CUSTOM_KERNEL)
    assert "beside ModelNew" in report.reason


def test_a_source_that_does_not_parse_is_a_compile_error():
    report = scan("def f(:\n", profile="open", entry="ModelNew")
    assert report.status is Status.COMPILE_ERROR
    assert "SyntaxError" in report.reason
    assert "line 1" in report.reason


@pytest.mark.parametrize("text", ["x = 1\0", "(" * 5000, "-" * 200_000 + "1", "x = '" + "\\N{BAD}" + "'"])
def test_hostile_python_never_raises(text):
    assert scan(text, profile="open", entry="ModelNew", advisory="off").status is Status.COMPILE_ERROR


def test_macros_without_bound_are_refused():
    lines = ["#define P(a, b) a##b", "#define M0 x x"] + [f"#define M{n} M{n - 1} M{n - 1} M{n - 1} M{n - 1}" for n in range(1, 11)]
    report = scan_native("\n".join([*lines, "int y = M10;"]), profile="open")
    assert "macros" in {f.rule for f in report.findings}


def test_findings_are_bounded_and_printable():
    source = KERNEL + "import os\n" + "\n".join(f"os.exec{n}()" for n in range(300)) + "\nx = '/proc/\\x1b[31m/mem'\n"
    report = scan(source, profile="open", entry="ModelNew", advisory="off")
    assert len(report.findings) == 50
    assert all(f.text.isprintable() and len(f.text) <= 160 for f in report.findings)
