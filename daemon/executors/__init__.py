"""Where evaluation jobs run: on this machine (`local`), later through a spool directory or a cluster."""
