"""Actors of ``embed --on ray``: how many start, and how they read answers. Ray is a stand-in here."""

import os
import subprocess
import sys
import types

import pytest
from wellread.ray import _embed


@pytest.mark.parametrize(
    ("resources", "cpus", "gpus", "actors"),
    [
        ({"CPU": 0.3}, 0.1, 0, 3),
        ({"CPU": 8, "GPU": 0.7}, 1, 0.1, 7),
        ({"CPU": 7.9}, 2, 0, 3),
        ({"CPU": 4}, 1, 1, 0),
    ],
)
def test_as_many_actors_fit_as_ray_places(resources, cpus, gpus, actors):
    nodes = [{"Alive": True, "Resources": resources}, {"Alive": False, "Resources": {"CPU": 64, "GPU": 8}}]
    assert _embed.room(types.SimpleNamespace(nodes=lambda: nodes), cpus, gpus) == actors


PROGRAM = """
import sys
from wellread.ray import _embed
answer = list('{"name": "Zell\\xe4"}\\n'.encode())
code = f"import sys; sys.stdout.buffer.write(bytes({answer}))"
print(ascii(_embed.Program([sys.executable, "-c", code], None, {}).answer()["name"]))
"""


def test_programs_are_spoken_to_in_utf_8_whatever_the_locale_is():
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(command, env={**os.environ, **plain}, capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "'Zell\\xe4'", ran.stderr
