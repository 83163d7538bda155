"""The commands of `pisti`: a file each, or for a small family.

`add_parser` of each tells its arguments and what runs it. What takes long to import is imported
where it runs, so that `pisti --help` does not wait for it.
"""

from pisti_env.commands import bench, check, evaluate, explain, exploit, replay, rules, watch

COMMANDS = (watch, evaluate, exploit, replay, check, explain, rules, bench)
"""In the order of the help."""
