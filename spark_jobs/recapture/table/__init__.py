"""Write the published Delta tables."""
