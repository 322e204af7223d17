"""The clock protocol, in pieces that can each be stated in one sentence.

`channel` asks a process for something untimed; `mailbox` posts a call and reads its answer; `clock`
times one call from waking the runner until it is stopped again; `memory` reads a stopped runner's
memory; `overhead` says what an empty call costs, from the trusted runner only; `blocks` draws the
order of timing; `quiet` decides whether a block counts before its times are read.
No torch anywhere in here.
"""
