"""Programs that print the project's figures; each says in its docstring what it measures and how to run it."""
