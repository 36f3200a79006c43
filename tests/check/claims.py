"""What tests in Python share: claims that pass, fail or are skipped with a reason, and running programs."""

import shutil
import subprocess
import sys


class Skipped(Exception):
    """The claim cannot be tried here; the text says why and what to install."""


def need(program, package):
    """The path of a program, or the claim is skipped."""
    found = shutil.which(program, path="/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin")
    if not found:
        raise Skipped(f"{program} is not installed: apt-get install {package}")
    return found


def run(*words, ok=True, **more):
    """Standard output of a command that must (not) succeed; what it said otherwise."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)
    assert (done.returncode == 0) == ok, f"`{' '.join(map(str, words))}` exits with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout if ok else done.stdout + done.stderr


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def main(claims, subject):
    """Tries every (sentence, function of subject); ends the process with the counts."""
    passed = failed = skipped = 0
    for name, claim in claims:
        try:
            claim(subject)
        except Skipped as reason:
            skipped += 1
            print(f"skipped  {name}: {reason}", flush=True)
        except (AssertionError, KeyError, ValueError, OSError) as error:
            failed += 1
            print(f"FAILED   {name}\n{type(error).__name__}: {error}", flush=True)
        else:
            passed += 1
            print(f"passed   {name}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)
