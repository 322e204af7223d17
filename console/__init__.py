"""What a person sees of Ratchet: the command line, the Textual console, and replays of journals.

Invariant: importing this package loads neither torch nor Textual nor a model SDK.
Not for: deciding anything; every figure shown was computed elsewhere and is in the journal.
"""
