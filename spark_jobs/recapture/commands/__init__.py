"""The commands: a module each, with its arguments and what it does. A module is imported when its command runs."""
