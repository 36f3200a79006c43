#!/usr/bin/env python3
"""Man pages of what the program says about itself: make.py BELLOWS MAN1 MAN5.

`bellows help --json` prints the tables from which arguments are parsed, so that a page cannot name an option that is not there, nor leave one
out. MAN1 gets bellows.1 and a page for each command, MAN5 gets bellows.conf.5. The date is SOURCE_DATE_EPOCH's, else today's.
"""

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap

EXIT_CODES = (
    ("0", "All went well."),
    ("1", "Invalid: a proof that does not verify, a witness that does not satisfy its circuit."),
    ("2", "Usage or input; the sentence on standard error says what was found, what is allowed and what to do."),
    ("3", "A device, or resources of this machine."),
    ("4", "The network, or stopped before the end."),
    ("5", "A fault of the program itself."),
)
SPECIAL = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def roff(text):
    """Text as roff input that shows exactly these characters."""
    out = "".join(SPECIAL.get(c, c if ord(c) < 128 else f"\\[u{ord(c):04X}]") for c in text)
    return "\\&" + out if out.startswith(".") else out


def paragraph(text):
    """Short input lines, a sentence on lines of its own, as roff wants it."""
    sentences = re.split(r"(?<=\.) +(?=[A-Z])", " ".join(text.split()))
    return "\n".join(roff(line) for sentence in sentences for line in textwrap.wrap(sentence, 72, break_long_words=False, break_on_hyphens=False))


def full(text):
    """A sentence of a table, as one with a capital and a stop."""
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", ")")) else text + "."


def notes(text):
    """Paragraphs; lines that begin with a blank are examples, shown as they are."""
    out, prose, example = [], [], []

    def flush():
        if prose:
            out.append(".PP\n" + paragraph(" ".join(prose)))
        if example:
            out.append(".PP\n.EX\n" + "\n".join(roff(line) for line in example) + "\n.EE")
        prose.clear()
        example.clear()

    for line in text.strip("\n").split("\n"):
        if line.startswith(" "):
            if prose:
                flush()
            example.append(line)
        else:
            if example or not line.strip():
                flush()
            prose.append(line)
    flush()
    return out


def tagged(flag, value, text, fallback=None, variable=None):
    tag = f"\\fB{roff(flag)}\\fR" + (f" \\fI{roff(value)}\\fR" if value else "")
    lines = [".TP", tag, paragraph(full(text))]
    if fallback:
        lines.append(f"Default: \\fB{roff(fallback)}\\fR.")
    if variable:
        lines.append(f"Environment: \\fB{roff(variable)}\\fR.")
    return "\n".join(lines)


def head(name, section, sentence, date, version):
    return [
        f'.TH {name.upper().replace("-", chr(92) + "-")} {section} "{date}" "bellows {version}" "Bellows"',
        ".SH NAME",
        f"{roff(name)} \\- {roff(sentence)}",
    ]


def exit_status():
    out = [".SH EXIT STATUS"]
    for code, text in EXIT_CODES:
        out += [".TP", f"\\fB{code}\\fR", paragraph(text)]
    return out


def page_name(command):
    return "bellows-" + command["name"].replace(" ", "-")


def see_also(names):
    return [".SH SEE ALSO", ",\n".join(f"\\fB{roff(name)}\\fR({section})" for name, section in names)]


def command_page(command, tables, date):
    settings = {row["flag"]: row for row in tables["settings"]}
    out = head(page_name(command), 1, command["text"], date, tables["version"])
    words = [f"\\fBbellows {roff(command['name'])}\\fR"]
    for p in command["positionals"]:
        name = f"\\fI{roff(p['name'])}\\fR" + (" ..." if p["repeats"] else "")
        words.append(f"[{name}]" if p["fallback"] else name)
    out += [".SH SYNOPSIS", "\n".join(words + ["[\\fIoptions\\fR]"]), ".SH DESCRIPTION", paragraph(full(command["text"]))]
    out += notes(command["notes"]) if command["notes"] else []
    out += [tagged(p["name"], None, p["text"], p["fallback"]) for p in command["positionals"]]
    out.append(".SH OPTIONS")
    for o in command["options"]:
        if not o["text"].startswith("Internal:"):
            out.append(tagged("--" + o["name"], o["value"], o["text"], o["fallback"], o["variable"]))
    if command["settings"]:
        out.append(tagged("--config", "FILE", "Settings, as in bellows.conf(5).", None, "BELLOWS_CONFIG"))
    out.append(tagged("--help", None, "Prints a short form of this page."))
    if command["settings"]:
        out += [".SH SETTINGS", paragraph(
            "Each may also stand in the settings file; the command line wins over the environment, the environment over the file.")]
        for flag in command["settings"]:
            row = settings[flag]
            value = None if row["kind"] == "switch" else row["value"]
            out.append(tagged("--" + flag, value, row["text"], row["fallback"], row["variable"]))
    out += exit_status()
    out += see_also([("bellows", 1)] + ([("bellows.conf", 5)] if command["settings"] else []))
    return out


def program_page(tables, date):
    out = head("bellows", 1, "a fleet of Groth16 provers", date, tables["version"])
    out += [".SH SYNOPSIS", "\\fBbellows\\fR \\fICOMMAND\\fR\n[\\fIarguments\\fR]\n[\\fIoptions\\fR]", ".SH DESCRIPTION"]
    out.append(paragraph(
        "Worker nodes pull compressed jobs from NATS, prove, verify every proof, and publish proofs and timings; a coordinator spreads the "
        "backlog over the devices of many hosts. The same program proves and verifies on the command line, without NATS."))
    out.append(".SH COMMANDS")
    for command in tables["commands"]:
        out += [".TP", f"\\fB{roff(page_name(command))}\\fR(1)", paragraph(full(command["text"]))]
    out += exit_status()
    out += [".SH ENVIRONMENT", paragraph(
        "BELLOWS_CONFIG names the settings file. Every setting has a variable of its own, which bellows.conf(5) lists; options that have one name it on "
        "their page.")]
    return out + see_also([("bellows.conf", 5), ("nats-server", 8)])


def settings_page(tables, date):
    out = head("bellows.conf", 5, "settings of bellows", date, tables["version"])
    out += [".SH DESCRIPTION", paragraph(
        "A line is name = value; # begins a comment line. Order: defaults, then the file, then the environment, then the command line. A name that is not "
        "listed here is refused. No file is read unless --config or BELLOWS_CONFIG names it. Sizes are numbers with KiB, MiB, GiB or TiB, times numbers "
        "with ms, s, min, h or d.")]
    out.append(".SH SETTINGS")
    for row in tables["settings"]:
        allowed = row["range"] or row["value"]
        out.append(tagged(row["name"] + " =", allowed, row["text"], row["fallback"], row["variable"]))
        out.append(f"Read by: {roff(row['commands'])}.")
    return out + see_also([("bellows", 1), ("bellows-config", 1)])


def write(folder, name, lines):
    with open(f"{folder}/{name}", "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\n")


def today():
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc) if epoch else datetime.datetime.now()
    return now.strftime("%Y-%m-%d")


def empty(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)


def main():
    program, man1, man5 = sys.argv[1:4]
    tables = json.loads(subprocess.run([program, "help", "--json"], capture_output=True, check=True, text=True).stdout)
    date = today()
    empty(man1)
    empty(man5)
    write(man1, "bellows.1", program_page(tables, date))
    write(man5, "bellows.conf.5", settings_page(tables, date))
    for command in tables["commands"]:
        write(man1, page_name(command) + ".1", command_page(command, tables, date))


if __name__ == "__main__":
    main()
