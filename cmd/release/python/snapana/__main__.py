"""python -m snapana ARGS: what `snapana ARGS` does."""

import os
import sys

from ._run import Error, binary


def main() -> int:
    try:
        program = binary()
    except Error as err:
        print(f"snapana: {err}", file=sys.stderr)
        return 3
    line = [program, *sys.argv[1:]]
    if sys.platform != "win32":
        sys.stdout.flush()
        os.execv(program, line)
    import subprocess

    running = subprocess.Popen(line)
    while True:
        try:
            return running.wait()
        except KeyboardInterrupt:  # the program got it, too, and ends in order
            continue


if __name__ == "__main__":
    sys.exit(main())
