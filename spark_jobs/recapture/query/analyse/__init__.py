"""What a query means: its relations, scopes and types, checked and typed one SELECT after the other."""
