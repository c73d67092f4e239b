"""Engines that `kvconform run --engine NAME` starts in this process, a file each; `driver(wanted)` starts one."""
