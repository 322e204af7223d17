"""Real compilations through the builder, then loading as the runner does. Marked slow: each takes some 10 s on two cores.

One cache for the whole file, so that torch's header is precompiled once. RATCHET_TEST_CACHE names a directory to keep it between runs.
"""

import json
import os
import textwrap
import threading
from pathlib import Path

import pytest

from evaluator.build import builder
from evaluator.build.builder import STAND_IN, build
from evaluator.records import Status
from evaluator.sandbox.command import Bind
from evaluator.sandbox.probe import require_sandbox
from evaluator.sandbox.process import SandboxProcess

TIMEOUT_S = 240.0
DOUBLE = """
#include <cmath>
torch::Tensor twice(torch::Tensor x) {
  auto y = torch::empty_like(x);
  for (int64_t i = 0; i < x.numel(); i++) y.data_ptr<float>()[i] = 2 * x.data_ptr<float>()[i];
  return y;
}
void add_one_(torch::Tensor x) { x.add_(1); }
int64_t three() { return 3; }
"""
MODEL = "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return ext.twice(x)\n"
GOOD = f"""
import torch
from torch.utils.cpp_extension import load_inline
documented = {{"twice": "Doubles.", "add_one_": "In place.", "three": "3"}}
ext = load_inline(name="ext", cpp_sources={DOUBLE!r}, functions=documented, extra_cflags=["-O3"])
assert ext.twice.__doc__.strip().endswith("Doubles.")
assert ext.twice(torch.ones(3)).tolist() == [2, 2, 2]
{MODEL}"""


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    kept = os.environ.get("RATCHET_TEST_CACHE")
    return Path(kept) if kept else tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def sandbox():
    return require_sandbox()


@pytest.fixture(scope="session")
def make(cache, sandbox):
    def run(source, entry="ModelNew", timeout_s=TIMEOUT_S, **options):
        options = {"prepare_headers": True, "cache": cache, **options}
        return build(textwrap.dedent(source), entry=entry, sandbox=sandbox, timeout_s=timeout_s, **options)

    return run


@pytest.fixture(scope="session")
def good(make):
    built = make(GOOD)
    assert built.status is Status.OK, built.log
    return built


@pytest.fixture
def load(sandbox, tmp_path):
    """Run `text` in a sandbox with the stand-in in load mode and the build's directory, and return what it prints as JSON."""

    def run(text, directory, blank=False):
        script = tmp_path / "run.py"
        head = (
            f"import sys, json\nsys.path.insert(0, '/r')\nimport torch, extension\nextension.install_load('/extensions', blank={blank})\n"
        )
        script.write_text(head + textwrap.dedent(text))
        script.chmod(0o644)
        binds = [
            Bind(source=script, target="/r/run.py"),
            Bind(source=STAND_IN, target="/r/extension.py"),
            Bind(source=directory, target="/extensions"),
        ]
        with SandboxProcess.start(["/r/run.py"], sandbox=sandbox, profile="run", binds=binds) as process:
            ended = process.wait(60)
            assert ended is not None
            assert ended.ok, process.stderr
            return json.loads(process.stdout)

    return run


def with_extension(cpp, functions, **arguments):
    call = ", ".join(f"{k}={v!r}" for k, v in arguments.items())
    head = "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
    return f"{head}ext = load_inline('ext', {cpp!r}, functions={functions!r}, {call})\n{MODEL}"


@pytest.mark.slow
def test_a_good_source_is_built_and_kept(good, make):
    assert good.directory is not None
    assert [e.name for e in good.extensions] == ["ext"]
    assert good.extensions[0].cflags == ("-O3",)
    assert good.extensions[0].header == "precompiled"
    text = good.generated["ext/main.cpp"]
    assert text.startswith("#include <torch/extension.h>\n")
    assert 'm.def("twice", torch::wrap_pybind_function(twice), "Doubles.");' in text
    assert (good.directory / f"{good.extensions[0].key}.so").stat().st_size > 10_000
    again = make(GOOD)
    assert again == good.but(cached=True)


@pytest.mark.slow
def test_the_runner_loads_what_was_built(good, load):
    seen = load(
        f"exec({GOOD!r})\nx = torch.arange(3.0)\nprint(json.dumps([ModelNew()(x).tolist(), extension.call_counts()]))", good.directory
    )
    assert seen == [[0.0, 2.0, 4.0], {"ext.twice": 2, "ext.add_one_": 0, "ext.three": 0}]


@pytest.mark.slow
def test_blanking_runs_and_then_spoils_what_came_out(good, load):
    source = GOOD.replace("assert ext.twice(torch.ones(3)).tolist() == [2, 2, 2]", "")
    seen = load(
        f"""
        exec({source!r})
        x = torch.ones(3)
        y = ext.twice(x)
        kept = x.clone()
        ext.add_one_(x)
        seen = [y.isnan().all().item(), kept.tolist(), x.isnan().all().item(), ext.three(), extension.call_counts()["ext.twice"]]
        print(json.dumps(seen))
        """,
        good.directory,
        blank=True,
    )
    assert seen == [True, [1.0, 1.0, 1.0], True, 3, 1]


@pytest.mark.slow
def test_a_call_that_was_not_built_says_so(good, load):
    seen = load(
        f"""
        try:
            exec({GOOD.replace("-O3", "-O1")!r})
        except RuntimeError as error:
            print(json.dumps(str(error)))
        """,
        good.directory,
    )
    assert "extension 'ext' was not built" in seen


@pytest.mark.slow
def test_the_same_request_of_another_source_is_not_compiled_again(good, make, monkeypatch):
    monkeypatch.setattr(builder.Compiler, "compile", None)
    other = make(GOOD + "\n# another source\n")
    assert other.status is Status.OK
    assert not other.cached
    assert other.extensions[0].sha256 == good.extensions[0].sha256


@pytest.mark.slow
def test_a_compile_error_carries_the_compilers_text(make):
    built = make(with_extension("torch::Tensor twice(torch::Tensor x) { return x * undeclared_thing; }", ["twice"]))
    assert built.status is Status.COMPILE_ERROR
    assert "main.cpp:2" in built.message
    assert "undeclared_thing" in built.message
    assert "undeclared_thing" in built.log
    assert built.directory is None
    assert not any(path in built.log for path in ("/sources", "/tmp/", "/out"))


@pytest.mark.slow
def test_what_the_short_header_lacks_is_compiled_with_torchs_own(make):
    cpp = "torch::Tensor twice(torch::Tensor x) { torch::nn::ReLU relu; return relu(x) * 2; }"
    built = make(with_extension(cpp, ["twice"], extra_cflags=["-O0"]))
    assert built.status is Status.OK, built.log
    assert built.extensions[0].header == "full"


@pytest.mark.slow
def test_an_undefined_symbol_is_a_compile_error(make):
    built = make(
        with_extension("torch::Tensor missing(torch::Tensor); torch::Tensor twice(torch::Tensor x) { return missing(x); }", ["twice"])
    )
    assert built.status is Status.COMPILE_ERROR
    assert "missing" in built.message


@pytest.mark.slow
def test_files_and_headers_through_load(make, load):
    source = """
    import os, torch
    from torch.utils.cpp_extension import load
    os.makedirs("/scratch/code/inner", exist_ok=True)
    open("/scratch/code/a.cpp", "w").write('#include <torch/extension.h>\\n#include "a.h"\\n#include <b.h>\\n'
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", [](int x) { return x + A + B; }); }')
    open("/scratch/code/a.h", "w").write("#define A 10\\n")
    open("/scratch/code/inner/b.h", "w").write("#define B 100\\n")
    ext = load(name="files", sources=["/scratch/code/a.cpp"], extra_include_paths=["/scratch/code/inner"])
    assert ext.f(1) == 111
    class ModelNew: pass
    """
    built = make(source)
    assert built.status is Status.OK, built.log
    assert built.generated["files/scratch/code/a.h"] == "#define A 10\n"
    assert built.generated["files/scratch/code/inner/b.h"] == "#define B 100\n"
    assert load(f"exec({textwrap.dedent(source)!r})\nprint(json.dumps(ext.f(2)))", built.directory) == 112


@pytest.mark.slow
def test_operators_registered_with_the_dispatcher_are_counted_and_blanked(make, load):
    cpp = """
    #include <torch/library.h>
    torch::Tensor plus(const torch::Tensor& x) { return x + 1; }
    TORCH_LIBRARY(mine, m) { m.def("plus(Tensor x) -> Tensor", plus); }
    """
    source = f"""
import torch
from torch.utils.cpp_extension import load_inline
load_inline(name="ops", cpp_sources={cpp!r}, is_python_module=False)
class ModelNew: pass
"""
    built = make(source)
    assert built.status is Status.OK, built.log
    program = f"exec({source!r})\ny = torch.ops.mine.plus(torch.ones(2))\nprint(json.dumps([str(y.tolist()), extension.call_counts()]))"
    assert load(program, built.directory) == ["[2.0, 2.0]", {"mine.plus": 1}]
    assert load(program, built.directory, blank=True) == ["[nan, nan]", {"mine.plus": 1}]


@pytest.mark.slow
def test_two_judges_at_once_end_with_the_same_entry(cache, sandbox):
    source = with_extension(DOUBLE.replace("int64_t three", "int64_t drei"), ["twice"], extra_cflags=["-O3"])
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(build(source, entry="ModelNew", cache=cache, sandbox=sandbox, timeout_s=TIMEOUT_S)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r.status for r in results] == [Status.OK, Status.OK]
    assert results[0].directory == results[1].directory
    assert list((cache / "fresh").iterdir()) == []


NO_EXTENSION = "import torch\nclass ModelNew(torch.nn.Module):\n    pass\n"


def test_a_source_without_extensions(make):
    built = make(NO_EXTENSION)
    assert (built.status, built.extensions, built.generated, built.message) == (Status.OK, (), {}, "")
    assert built.directory is not None
    assert make(NO_EXTENSION).cached


def test_what_is_imported_is_reported(make):
    built = make("import torch, triton\nimport wave\n@triton.jit\ndef k(x):\n    pass\nclass ModelNew: pass\n")
    assert built.status is Status.OK, built.log
    assert {"triton", "wave"} <= set(built.imports)
    assert "torch" not in built.imports


@pytest.mark.parametrize(
    ("source", "status", "message"),
    [
        ("def broken(:\n", Status.COMPILE_ERROR, "SyntaxError"),
        ("import torch\nclass Model: pass\n", Status.COMPILE_ERROR, "the source defines no `ModelNew`"),
        ("1 / 0\n", Status.RUNTIME_ERROR, "the import raised ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(0)\n", Status.RUNTIME_ERROR, "the import raised SystemExit: 0"),
        ("import os\nos._exit(0)\n", Status.RUNTIME_ERROR, "the import ended its process"),
        ("import ctypes\nctypes.string_at(8)\n", Status.RUNTIME_ERROR, "the import crashed with SIGSEGV"),
        ("import no_such_module\n", Status.RUNTIME_ERROR, "No module named 'no_such_module'"),
        ("import evaluator.records\n", Status.RUNTIME_ERROR, "No module named 'evaluator'"),
        ("import subprocess\nsubprocess.run(['g++', '--version'])\n", Status.RUNTIME_ERROR, "Operation not permitted"),
        ("open('/extensions/x.so', 'w')\n", Status.RUNTIME_ERROR, "Read-only file system"),
        ("class ModelNew: pass\nraise RuntimeError('\\x1b[31m' + 'x' * 10**6)\n", Status.RUNTIME_ERROR, "the import raised"),
    ],
)
def test_imports_that_fail(make, source, status, message):
    built = make(source)
    assert built.status is status, built
    assert message in built.message
    assert built.directory is None
    assert len(built.log) <= 16_000
    assert "\x1b" not in built.log


def test_failed_builds_are_not_kept(make):
    assert not make("1 / 0\n").cached
    assert not make("1 / 0\n").cached


def test_a_build_that_never_ends_is_a_timeout(make):
    built = make("while True: pass\n", timeout_s=3.0)
    assert (built.status, built.message) == (Status.TIMEOUT, "the build did not finish in time")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"extra_cflags": ["-fplugin=/scratch/x.so"]}, "'-fplugin=/scratch/x.so' is not allowed"),
        ({"cuda_sources": "__global__ void k() {}"}, "the device is a CPU"),
        ({"with_cuda": True}, "the device is a CPU"),
        ({"sycl_sources": "int x;"}, "not supported"),
    ],
)
def test_requests_that_are_not_compiled(make, arguments, words):
    built = make(with_extension("int f() { return 1; }", ["f"], **arguments))
    assert built.status is Status.COMPILE_ERROR
    assert words in built.message


@pytest.mark.parametrize("last_word", ['{"done": 5}', '{"extension": {"format": 1}}', "nonsense", '{"done": {"text": 1}}'])
def test_a_candidate_that_writes_the_judges_lines_only_hurts_itself(make, last_word):
    built = make(f"import os, sys\nos.write(int(sys.argv[1]), {last_word!r}.encode() + b'\\n')\nimport time\ntime.sleep(30)\n")
    assert built.status is Status.RUNTIME_ERROR
    assert "the builder sandbox sent" in built.message
    assert built.directory is None


def test_files_lie_beside_the_candidate(make):
    source = "from task import VALUE\nassert VALUE == 5\ndef custom_kernel(data): return data\n"
    built = make(source, entry="custom_kernel", files={"task.py": "VALUE = 5\n"})
    assert built.status is Status.OK, built.log
    assert make(source, entry="custom_kernel", files={"task.py": "VALUE = 6\n"}).status is Status.RUNTIME_ERROR
