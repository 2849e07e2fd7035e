"""Print shell completions of weft, weft-opt and weft-reduce: flags, passes, targets and files.

  eval "$(weft completion bash)"                                     # in ~/.bashrc
  eval "$(weft completion zsh)"                                      # in ~/.zshrc, after compinit
  weft completion fish > ~/.config/fish/completions/weft.fish

Passes and targets are those of the packages that are installed when the completions are printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module

from weft.support.errors import CompileError
from weft.tools.weft_cli import COMMANDS
from weft.tools.weft_opt import WeftOptMain
from weft.tools.weft_reduce import make_parser

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(arguments: argparse.Namespace) -> int:
    print(completion(arguments.shell), end="")
    return 0


def completion(shell: str) -> str:
    driver = WeftOptMain(args=[])
    tables = _Tables(
        {name: _flags_of(name) for name in COMMANDS},
        _flags(driver.argument_parser),
        _flags(make_parser()),
        sorted(driver.available_passes),
        sorted(driver.available_targets),
    )
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](tables)


class _Tables:
    def __init__(
        self,
        commands: Mapping[str, list[str]],
        opt_flags: list[str],
        reduce_flags: list[str],
        passes: Sequence[str],
        targets: Sequence[str],
    ) -> None:
        self.commands, self.opt_flags, self.reduce_flags = commands, opt_flags, reduce_flags
        self.passes, self.targets = passes, targets


def _flags_of(name: str) -> list[str]:
    parser = argparse.ArgumentParser(add_help=True)
    try:
        import_module(COMMANDS[name][0]).add_arguments(parser)
    except CompileError:  # weft bench exists only in source checkouts
        return []
    return _flags(parser)


def _flags(parser: argparse.ArgumentParser) -> list[str]:
    actions = parser._actions  # argparse has no public list
    return sorted(flag for action in actions for flag in action.option_strings if flag.startswith("--"))


def _bash(tables: _Tables) -> str:
    cases = "\n".join(f"    {name}) flags='{' '.join(flags)}' ;;" for name, flags in tables.commands.items())
    return f"""_weft() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} flags=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{" ".join(tables.commands)}' -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
_weft_opt() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} flags=$1 head
  COMPREPLY=()
  case $before in
    -p|--passes|--pass-pipeline|--help-pass)
      head=${{word%"${{word##*[,(]}}"}}
      COMPREPLY=($(compgen -P "$head" -W '{" ".join(tables.passes)}' -- "${{word##*[,(]}}"))
      return ;;
    -t|--target|--help-target)
      COMPREPLY=($(compgen -W '{" ".join(tables.targets)}' -- "$word"))
      return ;;
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
_weft_opt_flags() {{ _weft_opt '{" ".join(tables.opt_flags)}'; }}
_weft_reduce_flags() {{ _weft_opt '{" ".join(tables.reduce_flags)}'; }}
complete -o filenames -F _weft weft
complete -o filenames -o nospace -F _weft_opt_flags weft-opt
complete -o filenames -o nospace -F _weft_reduce_flags weft-reduce
"""


def _zsh(tables: _Tables) -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(tables)}"


def _fish(tables: _Tables) -> str:
    lines = [
        f"complete -c weft -n __fish_use_subcommand -a {name} -d '{summary.replace(chr(39), '')}'"
        for name, (_, summary) in COMMANDS.items()
    ]
    for name, flags in tables.commands.items():
        lines += [f"complete -c weft -n '__fish_seen_subcommand_from {name}' -l {flag[2:]}" for flag in flags]
    for tool, flags in (("weft-opt", tables.opt_flags), ("weft-reduce", tables.reduce_flags)):
        lines += [f"complete -c {tool} -l {flag[2:]}" for flag in flags]
        passes = f"(string split ' ' '{' '.join(tables.passes)}')"
        lines.append(f'complete -c {tool} -s p -l passes -x -a "{passes}"')
        lines.append(f"complete -c {tool} -s t -l target -x -a '{' '.join(tables.targets)}'")
    return "\n".join(lines) + "\n"
