"""Every error code is provoked by a test."""

import re

NAME = "every error code is provoked by a test, or argued for in tests/tidy/codes.txt"
HEADER, LIST = "node/base/err.h", "tests/tidy/codes.txt"
OWN_TEST = "tests/unit/base/err.c"  # goes through all codes without provoking one


def check(tree):
    from tree import listed

    body = re.search(r"enum err \{(.*?)\};", tree.text(HEADER), re.DOTALL).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
    codes = re.findall(r"\bE_[A-Z_]+\b", body)
    tests = [p for p in tree.select(".c", ".cu", ".py", ".mjs", ".sh", under=("tests",))
             if p != OWN_TEST and not p.startswith(("tests/tidy/", "tests/check/"))]
    provoked = set()
    for path in tests:
        provoked.update(re.findall(r"\bE_[A-Z_]+\b", tree.text(path)))
    allowed = listed(tree.text(LIST)) if LIST in tree.paths else {}
    found = [(HEADER, 0, f"no test provokes {code}") for code in codes
             if code not in provoked and not allowed.get(code)]
    found += [(LIST, 0, f"{code} is provoked by now, or gone: take its line out") for code in allowed
              if code in provoked or code not in codes]
    return found


_ERR = {HEADER: "enum err {\n    OK = 0,\n    E_A, /* E_C */\n    E_B,\n    ERR_COUNT\n};\n"}
BAD = [
    {**_ERR, "tests/unit/a.c": "CHECK_ERR(E_A, f());"},
    {**_ERR, OWN_TEST: "E_A E_B"},
    {**_ERR, "tests/unit/a.c": "E_A E_B", LIST: "E_B needs a broken device\n"},
]
GOOD = [
    {**_ERR, "tests/unit/a.c": "E_A E_B"},
    {**_ERR, "tests/unit/a.c": "E_A", LIST: "E_B needs a broken device\n"},
]
