"""Feed the engine from CARLA: python hero.py [HOST [PORT]]; Ctrl-C ends it."""

import sys
import time
from pathlib import Path

import carla
import numpy as np

import motioncue

PROFILE = Path(__file__).with_name("carla.toml")
RECORD = np.dtype(  # what carla.toml describes
    [("time", "f8"), ("position", "f8", 3), ("velocity", "f8", 3), ("forward", "f8", 3), ("right", "f8", 3)]
)


def xyz(vector):
    """Return the components of a carla.Location or carla.Vector3D."""
    return vector.x, vector.y, vector.z


def hero_of(world):
    """Return the vehicle whose role is "hero", as CARLA's own examples call the driver's."""
    for actor in world.get_actors().filter("vehicle.*"):
        if actor.attributes.get("role_name") == "hero":
            return actor
    raise SystemExit("there is no vehicle with role_name 'hero'; start CARLA's manual_control.py first")


def fill(record, snapshot, hero):
    """Fill one record from a snapshot of the world; return whether the vehicle is in it."""
    actor = snapshot.find(hero.id)
    if actor is None:
        return False
    transform = actor.get_transform()
    record["time"] = snapshot.timestamp.elapsed_seconds
    record["position"] = xyz(transform.location)
    record["velocity"] = xyz(actor.get_velocity())
    record["forward"] = xyz(transform.get_forward_vector())
    record["right"] = xyz(transform.get_right_vector())
    return True


def run(host="127.0.0.1", port=2000, profile=PROFILE, record=None, wait=lambda: time.sleep(1.0)):
    """Feed the engine every step of CARLA until `wait`, called again and again, raises KeyboardInterrupt."""
    client = carla.Client(host, port)
    client.set_timeout(10.0)
    world = client.get_world()
    hero, row = hero_of(world), np.zeros(1, RECORD)
    with motioncue.Engine(profile, record=record) as engine:

        def step(snapshot):  # CARLA calls it in a thread of its own, after each step
            if fill(row[0], snapshot, hero):
                engine.feed(row)

        callback = world.on_tick(step)
        try:
            while True:
                wait()
        except KeyboardInterrupt:
            pass
        finally:
            world.remove_on_tick(callback)
        return engine.stats()


if __name__ == "__main__":
    host, port = [*sys.argv[1:], *["127.0.0.1", "2000"][len(sys.argv) - 1 :]]
    stats = run(host, int(port))
    print(f"{stats['frames_received']} frames fed, {stats['packets_sent']} packets sent, refused: {stats['rejected']}")
