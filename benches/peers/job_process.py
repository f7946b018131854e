"""Jobs of a benchmark, each in a process of its own: `SCRIPT --job JSON`, which prints its answer as JSON."""

import contextlib
import json
import subprocess
import sys


def choose(parser, options, **known):
    """Makes lists of options that name choices between commas; `none` is no choice. An unknown one ends with 2."""
    for name, choices in known.items():
        chosen = [one for one in getattr(options, name).split(",") if one and one != "none"]
        if not set(choices).issuperset(chosen):
            parser.error(f"--{name}: of {', '.join(choices)}")
        setattr(options, name, chosen)


def answer(work, job):
    """Prints the answer to a job. What libraries say of themselves meanwhile goes to the standard error."""
    with contextlib.redirect_stdout(sys.stderr):
        done = work(json.loads(job))
    print(json.dumps(done), flush=True)


def run(script, job, longest_s, environment=None):
    """The answer to a job, or {"error": …} where the process fails, says nothing, or takes longer than it may."""
    command = [sys.executable, script, "--job", json.dumps(job)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=longest_s, env=environment)
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {longest_s} s"}
    answer = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not answer:
        return {"error": (done.stderr.strip() or "no answer").splitlines()[-1][:300]}
    return json.loads(answer[-1])
