"""What one stage of a run leaves for the next: the run files and their types."""
