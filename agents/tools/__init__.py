"""The tools agents call, one concept a module, each made for one agent by `make_*`.

Invariant: every effect goes through the run port under the call's cause, so that a call executed again
after a crash finds what it already did. Not for: deciding promotions or reading measurements' raw data.
"""
