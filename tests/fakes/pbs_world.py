"""The world of the fake PBS commands: the JSON file $FAKE_PBS; see qstat."""

import fcntl
import json
import os
import sys
import time


def answering_world(program):
    """(the world, whether this question must fail); writes the question down, hangs if it must."""
    with open(os.environ["FAKE_PBS"], "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        world = json.load(file)
        fails = world.get("unreachable", 0)
        if fails and fails is not True:
            file.seek(0)
            json.dump({**world, "unreachable": fails - 1}, file)
            file.truncate()
    if world.get("asked"):
        with open(world["asked"], "a", encoding="utf-8") as file:
            file.write(" ".join([program, *sys.argv[1:]]) + "\n")
    if world.get("hang"):
        time.sleep(3600)
    return world, bool(fails)
