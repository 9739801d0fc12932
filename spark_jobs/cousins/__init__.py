"""Archives that Capture did not write (capture format, cousins): each kind's blobs as events."""
