"""What runs: run supervisor, evaluation queue, promotion gate, API and its client."""
