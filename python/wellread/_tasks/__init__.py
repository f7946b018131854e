"""The Python side of `wellread tasks`: adapters that run a branch's experiment and tell what its phases took.

    wellread tasks (Rust)                    this package, in a fresh process inside the branch's worktree
    worktree, environment, time limit  ── WELLREAD_TASK (JSON) ──▶  __main__ ─▶ lightning | cyto_dl   what is run
    results, intervals, report         ◀─ WELLREAD_PHASES (lines) ─  phases ◀─ callback                what is timed

The program carries these sources in its binary and runs them with the Python of the branch's environment. That need
not have `wellread`: nothing here imports anything of it from outside this folder. `wellread.lightning.PhaseTimer` is
the callback of this package, so a program of your own reports the same phases in the same way.

| module | what it holds |
|---|---|
| `phases`, `memory` | clock and memory of phases, and the writer of the lines |
| `callback`, `steps` | the phases of a Lightning trainer and of each of its batches, for the adapters and for users |
| `timer`, `curve` | the callback within a task's process, and the loss curve that it leaves behind |
| `framework` | which of Lightning's two packages is used |
| `task` | what the process is told, imports from the branch, errors |
| `settings` | `key=value`, and the names that resemble one that is not there |
| `lightning`, `experiment` | the adapter of Lightning, and its experiments |
| `cyto_dl`, `hydra_config` | the adapter of CytoDL, and its composed configs |

To add an adapter: a file with `run(context)` and a line in `__main__.ADAPTERS`.
"""
