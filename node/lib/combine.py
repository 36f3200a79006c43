"""combine.py OUT MAP ARCHIVE... -- CC...: one object of the first archive and what it needs of the others, in which only the functions of the
map stay global. So the static library hides what the shared one hides, and neither drags in what the program alone uses."""

import re
import subprocess
import sys

out, listing, first, *rest = sys.argv[1:]
cut = rest.index("--")
others, compiler = rest[:cut], rest[cut + 1 :]
whole = ["-Wl,--whole-archive", first, "-Wl,--no-whole-archive"]
group = ["-Wl,--start-group", *others, "-Wl,--end-group"]
subprocess.run([*compiler, "-r", "-nostdlib", "-o", out, *whole, *group], check=True)
names = re.findall(r"\bbellows_\w+", open(listing, encoding="utf-8").read())
subprocess.run(["objcopy", *(f"--keep-global-symbol={name}" for name in names), out], check=True)
