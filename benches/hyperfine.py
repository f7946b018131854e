"""Do wellread-measure and hyperfine agree on what two commands take?

    python benches/hyperfine.py TIME_COMMANDS 'COMMAND' 'COMMAND' [--rounds 20] [--blocks 6]

TIME_COMMANDS is the example `time_commands` of wellread-measure. Both programs time the same two commands in blocks
that alternate, so that a drifting machine drifts for both; hyperfine without a shell (`-N`). Printed are medians
over all blocks with 95 % bootstrap intervals over blocks, and the ratio of the programs' medians with its interval.
They agree where that holds 1. Exit code 1 where they do not.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RESAMPLES = 4000


def by_hyperfine(commands: list[str], rounds: int, folder: Path) -> list[list[float]]:
    """Seconds of every run of each command."""
    out = folder / "hyperfine.json"
    fixed = ["hyperfine", "-N", "--style", "none", "--warmup", "2", "--runs", str(rounds), "--export-json", str(out)]
    subprocess.run([*fixed, *commands], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return [result["times"] for result in json.loads(out.read_text())["results"]]


def by_wellread(program: str, commands: list[str], rounds: int, folder: Path) -> list[list[float]]:
    """Seconds of every run of each command."""
    out = folder / "wellread.json"
    subprocess.run([program, str(rounds), *commands, str(out)], check=True, stdout=subprocess.DEVNULL)
    return json.loads(out.read_text())


def median(blocks: list[list[float]]) -> float:
    return statistics.median(time for block in blocks for time in block)


def interval(figures: list[float]) -> tuple[float, float]:
    figures = sorted(figures)
    return figures[round(0.025 * (len(figures) - 1))], figures[round(0.975 * (len(figures) - 1))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("time_commands")
    parser.add_argument("commands", nargs=2)
    parser.add_argument("--rounds", type=int, default=20, help="runs of each command in a block")
    parser.add_argument("--blocks", type=int, default=6)
    args = parser.parse_args()
    # By program, command and block.
    times: dict[str, list[list[list[float]]]] = {"hyperfine": [[], []], "wellread": [[], []]}
    with tempfile.TemporaryDirectory() as folder:
        for block in range(args.blocks):
            turns = ["hyperfine", "wellread"] if block % 2 == 0 else ["wellread", "hyperfine"]
            for turn in turns:
                if turn == "hyperfine":
                    found = by_hyperfine(args.commands, args.rounds, Path(folder))
                else:
                    found = by_wellread(args.time_commands, args.commands, args.rounds, Path(folder))
                for command in range(2):
                    times[turn][command].append(found[command])
    rng = random.Random(1)
    draws = [[rng.randrange(args.blocks) for _ in range(args.blocks)] for _ in range(RESAMPLES)]
    agree = True
    for command, text in enumerate(args.commands):
        print(text)
        medians = {}
        for program, blocks in times.items():
            # The same blocks of both programs in a resample: what a block had in common cancels in the ratio.
            medians[program] = [median([blocks[command][i] for i in draw]) for draw in draws]
            low, high = interval(medians[program])
            print(f"  {program:9} {1e3 * median(blocks[command]):9.3f} ms [{1e3 * low:.3f}, {1e3 * high:.3f}]")
        ratio = median(times["wellread"][command]) / median(times["hyperfine"][command])
        low, high = interval([a / b for a, b in zip(medians["wellread"], medians["hyperfine"], strict=True)])
        agree &= low <= 1 <= high
        print(f"  ratio     {ratio:9.4f}    [{low:.4f}, {high:.4f}]{'' if low <= 1 <= high else '  they DIFFER'}")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
