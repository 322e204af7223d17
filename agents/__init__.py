"""Who proposes: model clients, conversations, orchestrator, idea agents, workers, episodes, prompts.

`agents.orchestrator.run_search` drives a run's agents through `agents.ports.RunPort`; agents only ever
produce text and requests. Not for: measuring, deciding promotions, or the run's life cycle.
"""
