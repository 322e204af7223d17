"""Which compiler and linker flags a candidate may ask for, and which of them change the precompiled header.

Invariant: pure functions over flags; a flag that would make the compiler run or read something else than the sources is refused.
Not for: deciding what is fast.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

REFUSED = re.compile(
    r"@|-fplugin|-iplugindir|-wrapper|-B|-specs|--specs|-o$|-o[^p]|-save-temps|--save-temps|-d[A-Z]|-fdump|-M|-E$|-S$|-c$|-fprofile"
    r"|-Xlinker|-T|--sysroot|-isysroot|-no-canonical|-x|-fuse-ld=[./]|-Wl,.*(@|-plugin|--script|-T|-o\b|--dynamic-linker|-rpath|--wrap)"
)
"""Would run other programs, write elsewhere, or change what is compiled."""
GENERATION = re.compile(
    r"-O([0-3sgz]|fast)?$|-std=(c|gnu)\+\+(17|20|23|1z|2a|2b)$|-m(arch|tune|cpu)=[\w.+-]+$|-mprefer-vector-width=\d+$"
    r"|-m(no-)?(avx\w*|fma|f16c|bmi2?|lzcnt|popcnt|sse[\w.]*|ssse3|amx-\w+)$"
    r"|-f(no-)?(fast-math|associative-math|reciprocal-math|signed-zeros|trapping-math|math-errno|finite-math-only|unsafe-math-optimizations"
    r"|rounding-math|openmp|openmp-simd|unroll-loops|unroll-all-loops|tree-vectorize|strict-aliasing|inline-functions|exceptions|rtti"
    r"|omit-frame-pointer|plt|peel-loops|stack-protector|strict-overflow)$|-ffp-contract=\w+$|-fvect-cost-model=\w+$|-fvisibility=\w+$|-pthread$|-g0$"
)
"""Change generated code, and so belong to a precompiled header's key."""
NEUTRAL = re.compile(r"-W(?!l,|a,|p,)|-w$|-D|-U|-I|-isystem|-fdiagnostics-|-pedantic|-fmax-errors=|-ftemplate-depth=|-ferror-limit")
"""May differ between a precompiled header and its use: the compiler checks that a macro was not used in the header."""
LINK = re.compile(
    r"-l[\w.+-]+$|-L|-Wl,|-fopenmp$|-pthread$|-s$|-O\d$|-flto|-fuse-ld=(bfd|gold|lld)$|-static-libgcc$|-static-libstdc\+\+$|-march=|-g0?$"
)
EXCLUSIVE = ("-O", "-std=", "-march=", "-mtune=", "-mcpu=")
DEFAULT = ("-O2",)


def refused(cflags: Sequence[str], ldflags: Sequence[str]) -> str | None:
    """The first flag that is refused, or None."""
    for flag in cflags:
        if not flag.startswith("-") or REFUSED.match(flag):
            return flag
    for flag in ldflags:
        if not LINK.match(flag) or REFUSED.match(flag):
            return flag
    return None


def header_flags(cflags: Sequence[str], standard: str) -> tuple[str, ...] | None:
    """The flags of the precompiled header that fits `cflags`, in a fixed order; None where no header may be used."""
    generation = [f"-std={standard}", *DEFAULT]
    for flag in cflags:
        if GENERATION.match(flag):
            generation.append(flag)
        elif not NEUTRAL.match(flag):
            return None
    return tuple(sorted({_slot(flag): flag for flag in generation}.values()))


def _slot(flag: str) -> str:
    """What a later flag of the same kind replaces."""
    for prefix in EXCLUSIVE:
        if flag.startswith(prefix):
            return prefix
    return flag.replace("-fno-", "-f", 1).replace("-mno-", "-m", 1)
