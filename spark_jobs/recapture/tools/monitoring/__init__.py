"""Figures of a pipeline for programs that watch it."""
