"""What the command does when its storage fails, when it is killed, and when several publish at once: `make chaos`."""
