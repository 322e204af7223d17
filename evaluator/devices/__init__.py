"""What differs between devices; everything else of the evaluator is the same for all."""
