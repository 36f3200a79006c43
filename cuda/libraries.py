"""Prints the folder that the given nvcc links the CUDA run-time library from."""

import os
import re
import subprocess
import sys


def main():
    nvcc = sys.argv[1]
    said = subprocess.run([nvcc, "--dryrun", "-c", "none.cu"], capture_output=True, text=True, check=False)
    folders = [
        os.path.realpath(folder)
        for line in (said.stdout + said.stderr).splitlines()
        if "LIBRARIES=" in line
        for folder in re.findall(r'"-L([^"]+)"', line)
    ]
    for folder in folders:
        if os.path.exists(os.path.join(folder, "libcudart_static.a")):
            print(folder)
            return
    sys.exit(f"{nvcc} names no folder with libcudart_static.a: {folders}")


main()
