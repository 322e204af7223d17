"""Episodes: one model's attempt at one problem in at most five replies (the frozen protocol).

`run_episode` drives it over the same model-client interface and run port as a search and returns an
`Outcome`. Not for: long searches (`agents.orchestrator`).
"""

from __future__ import annotations

from agents.episode.lifecycle import Boundary, LifecycleEvent
from agents.episode.loop import EpisodeTask, run_episode
from agents.episode.memory import Memory, NoMemory
from agents.episode.report import Outcome

__all__ = ["Boundary", "EpisodeTask", "LifecycleEvent", "Memory", "NoMemory", "Outcome", "run_episode"]
