"""The processor as a measured device: the embedded default."""
