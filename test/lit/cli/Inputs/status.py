"""status.py N COMMAND...: runs the command, passes its output on and succeeds if
its exit status is N."""

import subprocess
import sys

done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE,
                      stderr=subprocess.STDOUT, text=True, check=False)
print(done.stdout, end="")
if done.returncode != int(sys.argv[1]):
    print(f"exit status {done.returncode}, expected {sys.argv[1]}")
    sys.exit(1)
