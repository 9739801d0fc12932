"""Run a command as another user: python unprivileged.py USER COMMAND… Only root may do that."""

import os
import pwd
import sys


def main() -> None:
    """Become the user, without any other group, and replace this process by the command."""
    user, *command = sys.argv[1:]
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    os.chdir("/")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
