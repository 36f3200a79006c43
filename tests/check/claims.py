"""What tests in Python share: claims that pass, fail or are skipped with a reason, running programs, and peers from npm."""

import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy"))
from npm_packages import NotInstalled, install

RUN_MAX_S = 240


class Skipped(Exception):
    """The claim cannot be tried here; the text says why and what to install."""


def need(program, package):
    """The path of a program, or the claim is skipped."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin")
    if not found:
        raise Skipped(f"{program} is not installed: apt-get install {package}")
    return found


def run(*words, ok=True, **more):
    """Standard output of a command that must (not) succeed; what it said otherwise."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=RUN_MAX_S, **more)
    assert (done.returncode == 0) == ok, f"`{' '.join(map(str, words))}` exits with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout if ok else done.stdout + done.stderr


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def npm_folder(source, folder):
    """A folder of the build with all files of SOURCE and the npm packages that it locks; or the claim is skipped."""
    need("npm", "npm")
    try:
        install(source, folder)
    except NotInstalled as why:
        raise Skipped(f"npm cannot install the packages here: {why}") from why
    for name in os.listdir(source):
        if os.path.isfile(f"{source}/{name}"):
            shutil.copy(f"{source}/{name}", folder)
    return folder


def in_scratch(claim):
    """A claim about a folder of its own, that is empty before and gone afterwards."""

    def tried(_):
        with tempfile.TemporaryDirectory(prefix="bellows-claim") as scratch:
            claim(scratch)

    return tried


def main(claims, subject):
    """Tries every (sentence, function of subject); ends the process with the counts, and with 77 if nothing could be tried."""
    passed = failed = skipped = 0
    for name, claim in claims:
        try:
            claim(subject)
        except Skipped as reason:
            skipped += 1
            print(f"skipped  {name}: {reason}", flush=True)
        except Exception as error:  # a command that never ends, a page without what is looked for: this claim's, and the next one runs
            failed += 1
            print(f"FAILED   {name}\n{type(error).__name__}: {error}", flush=True)
        else:
            passed += 1
            print(f"passed   {name}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0 if passed else 77)
