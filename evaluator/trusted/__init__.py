"""The trusted process: inputs, cache flush, references and comparison.

It never runs candidate code and no runner ever maps its private copies. The judge asks it through
a control socket; what it decides (right or wrong, in words) comes back as plain data.
"""
