#!/usr/bin/env python3
"""Shell completions of what the program says about itself: make.py BELLOWS BASH ZSH FISH.

`bellows help --json` prints the tables from which arguments are parsed. Completed are commands, their options, and the values of options that
take one of some words; everything else is a file.
"""

import json
import re
import subprocess
import sys

CHOICE = re.compile(r"^[a-z0-9][a-z0-9-]*(\|[a-z0-9][a-z0-9-]*)+$")


def options_of(command, settings):
    """(flag, words it takes or [], takes a value, sentence) of each option that people use."""
    out = []
    for o in command["options"]:
        if not o["text"].startswith("Internal:"):
            value = o["value"] or ""
            out.append(("--" + o["name"], value.split("|") if CHOICE.match(value) else [], o["kind"] != "switch", o["text"]))
    for flag in command["settings"]:
        row = settings[flag]
        words = row["value"].split("|") if row["kind"] == "choice" else []
        out.append(("--" + flag, words, row["kind"] != "switch", row["text"]))
    if command["settings"]:
        out.append(("--config", [], True, "Settings, as name = value lines."))
    return out + [("--help", [], False, "Prints the command's page.")]


def first_words(tables):
    """First word → (sentence, second words)."""
    out = {}
    for command in tables["commands"]:
        first, _, second = command["name"].partition(" ")
        out.setdefault(first, [command["text"], []])
        if second:
            out[first][0] = "commands: " + ", ".join([w for w, _ in out[first][1]] + [second])
            out[first][1].append((second, command["text"]))
    return out


def bash(tables, settings):
    words = first_words(tables)
    families = {first: seconds for first, (_, seconds) in words.items() if seconds}
    lines = ["# bash completion of bellows; made from the program's own tables.", "_bellows() {",
             '    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} options="" values="" first=2',
             "    COMPREPLY=()", "    if [ \"$COMP_CWORD\" -eq 1 ]; then",
             f'        COMPREPLY=($(compgen -W "{" ".join(words)} --help --version" -- "$word"))', "        return", "    fi",
             "    case $command in"]
    for first, seconds in families.items():
        lines += [f"    {first})", "        if [ \"$COMP_CWORD\" -eq 2 ]; then",
                  f'            COMPREPLY=($(compgen -W "{" ".join(s for s, _ in seconds)} --help" -- "$word"))', "            return", "        fi",
                  '        command="$command ${COMP_WORDS[2]}" first=3', "        ;;"]
    lines += ["    esac", "    case $command in"]
    for command in tables["commands"]:
        options = options_of(command, settings)
        lines += [f'    "{command["name"]}")', f'        options="{" ".join(o[0] for o in options)}"', "        case $before in"]
        for flag, choices, takes, _ in options:
            if choices:
                lines.append(f'        {flag}) values="{" ".join(choices)}" ;;')
            elif takes:
                lines.append(f"        {flag}) return ;;")
        lines += ["        esac", "        ;;"]
    lines += ["    esac", "    if [ -n \"$values\" ]; then", '        COMPREPLY=($(compgen -W "$values" -- "$word"))',
              '    elif [ "${word#-}" != "$word" ]; then', '        COMPREPLY=($(compgen -W "$options" -- "$word"))', "    fi", "}",
              "complete -o default -F _bellows bellows"]
    return lines


def zsh_text(text):
    return text.replace("\\", "\\\\").replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:").replace("`", "\\`").replace("$", "\\$")


def zsh(tables, settings):
    lines = ["#compdef bellows", "# Made from the program's own tables.", "_bellows() {", "    local name=$words[2]", "    local -a found"]
    words = first_words(tables)
    lines.append("    if (( CURRENT == 2 )); then\n        found=(")
    lines += [f"            '{zsh_text(first)}:{zsh_text(text)}'" for first, (text, _) in words.items()]
    lines.append("        )\n        _describe command found\n        return\n    fi")
    lines.append("    case $name in")
    for first, (_, seconds) in words.items():
        if seconds:
            lines.append(f"    {first})\n        if (( CURRENT == 3 )); then\n            found=(")
            lines += [f"                '{zsh_text(second)}:{zsh_text(text)}'" for second, text in seconds]
            lines.append("            )\n            _describe command found\n            return\n        fi")
            lines.append('        name="$name $words[3]"\n        shift words\n        (( CURRENT-- ))\n        ;;')
    lines.append("    esac\n    shift words\n    (( CURRENT-- ))\n    case $name in")
    for command in tables["commands"]:
        lines.append(f"    '{command['name']}')\n        _arguments \\")
        for flag, choices, takes, text in options_of(command, settings):
            value = f":value:({' '.join(choices)})" if choices else ":value:_files" if takes else ""
            lines.append(f"            '*{flag}[{zsh_text(text)}]{value}' \\")
        lines.append("            '*:file:_files'\n        ;;")
    return lines + ["    esac", "}", '_bellows "$@"']


def fish_text(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(tables, settings):
    lines = ["# Made from the program's own tables.", "complete -c bellows -n __fish_use_subcommand -l version -d 'Says what was built'"]
    for first, (text, seconds) in first_words(tables).items():
        lines.append(f"complete -c bellows -f -n __fish_use_subcommand -a {first} -d {fish_text(text)}")
        none_yet = f"'__fish_seen_subcommand_from {first}; and not __fish_seen_subcommand_from {' '.join(s for s, _ in seconds)}'"
        lines += [f"complete -c bellows -f -n {none_yet} -a {second} -d {fish_text(text)}" for second, text in seconds]
    for command in tables["commands"]:
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command["name"].split())
        for flag, choices, takes, text in options_of(command, settings):
            value = f" -x -a {fish_text(' '.join(choices))}" if choices else " -r" if takes else ""
            lines.append(f"complete -c bellows -n '{seen}' -l {flag[2:]}{value} -d {fish_text(text)}")
    return lines


def main():
    program, *paths = sys.argv[1:5]
    tables = json.loads(subprocess.run([program, "help", "--json"], capture_output=True, check=True, text=True).stdout)
    settings = {row["flag"]: row for row in tables["settings"]}
    for path, make in zip(paths, (bash, zsh, fish)):
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(make(tables, settings)) + "\n")


if __name__ == "__main__":
    main()
