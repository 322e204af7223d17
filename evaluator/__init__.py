"""The protected evaluator: whoever wrote a candidate and however hard it tries, the verdict is true and the speed real.

`records` is what crosses its boundary (standard library only); `python -m evaluator` runs it.
"""
