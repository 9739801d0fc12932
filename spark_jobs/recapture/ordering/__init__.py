"""From the blobs of a partition to its events in order, with what was counted on the way."""
