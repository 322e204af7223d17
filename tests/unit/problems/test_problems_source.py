import pytest

from problems import source
from problems.errors import BadProblem

TEXT = '''"""Über."""
rows = 4  # of x
shape: tuple = (rows, 2)
a, b = 1, 2


def f(x, /, y, *, z=1):
    return x


def g(**more):
    return f"cuda {rows}"


class Model:
    """Words."""
'''


def test_the_outline_lists_names_parameters_and_constants():
    found = source.outline(TEXT, where="t.py")
    assert {"rows", "shape", "a", "b", "f", "g", "Model"} <= found.names
    assert found.functions == {"f": ("x", "y", "z"), "g": ("**",)}
    assert found.constants == {"rows", "shape"}
    assert found.docstring == "Words."


def test_constants_are_replaced_where_they_stand_and_nothing_else_moves():
    new = source.with_constants(TEXT, {"rows": 100, "shape": [1, 2]}, where="t.py")
    assert new == TEXT.replace("rows = 4 ", "rows = 100 ").replace("(rows, 2)", "[1, 2]", 1)


def test_constants_after_other_alphabets_and_line_ends_keep_their_place():
    text = "s = 'ä\u2028ö'; n = 1\r\nm = 2\r\n"
    assert source.with_constants(text, {"n": 10, "m": 20}, where="t.py") == "s = 'ä\u2028ö'; n = 10\r\nm = 20\r\n"


def test_an_unknown_constant_is_named():
    with pytest.raises(BadProblem) as caught:
        source.with_constants(TEXT, {"row": 1}, where="t.py")
    assert "'row'" in caught.value.message
    assert "rows" in caught.value.hint


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.randn(3, device='cuda')", "torch.randn(3, device='cpu')"),
        ('torch.randn(3, device="cuda:0").cuda().sum()', "torch.randn(3, device='cpu').cpu().sum()"),
        ("torch.cuda.is_available()", "torch.cuda.is_available()"),
        ("f'cuda {x}'", "f'cuda {x}'"),
        ("'a cuda kernel'", "'a cuda kernel'"),
        ("x.cuda(0)", "x.cuda(0)"),
    ],
)
def test_the_device_name_is_read_as_the_cpu_on_a_cpu_only(before, after):
    assert source.for_device(before, "cpu", where="t.py") == after
    assert source.for_device(before, "cuda:0", where="t.py") == before
