"""Processes that are stopped while they read lines."""

import subprocess
import sys


def stopped_after(lines, *options):
    """Run `braided live` on lines and a bad one, stop it politely, and return its output and its notes."""
    command = [sys.executable, "-m", "braided", "live", *map(str, options)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:
        process.stdin.write("\n".join([*lines, "nonsense", ""]))
        process.stdin.flush()
        while f"line {len(lines) + 1} " not in process.stderr.readline():  # until all lines before it are taken
            pass
        process.terminate()
        printed, said = process.communicate()
    assert process.returncode == 130
    return printed, said
