"""Feed the engine from CARLA: python hero.py [HOST [PORT]]; Ctrl-C ends it."""

import math
import sys
import time
from pathlib import Path

import carla
import numpy as np

import motioncue

PROFILE = Path(__file__).with_name("carla.toml")
GRIP = 4.0  # largest acceleration in a bend [m/s^2]
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


def ahead_of(road, hero):
    """Return what the car will feel if it keeps its lane: rows for motioncue.AHEAD_S; NaN is not known."""
    rows = np.zeros(len(motioncue.AHEAD_S), motioncue.MOTION_DTYPE)
    rows["surge"] = np.nan
    speed, transform = math.hypot(*xyz(hero.get_velocity())), hero.get_transform()
    here = road.get_waypoint(transform.location)
    surge = np.dot(xyz(hero.get_acceleration()), xyz(transform.get_forward_vector()))
    for row, seconds in zip(rows, motioncue.AHEAD_S, strict=True):
        reach = 0.5 + 0.1 * speed  # [m] before and behind, over which the bend is measured
        ways = [here.next(max(0.1, speed * seconds + side * reach)) for side in (0.0, 2.0)]
        if speed < 2.0 or any(len(way) != 1 or way[0].is_junction for way in ways):
            break  # slow, or the road forks: from here on nothing is known
        first, second = (way[0].transform.rotation for way in ways)
        bend = math.radians(math.remainder(second.yaw - first.yaw, 360.0)) / (2.0 * reach)  # [rad/m], to the right
        slow = min(speed, math.sqrt(GRIP / max(abs(bend), 1e-6)))  # who drives will brake before a sharper bend
        row["surge"], row["sway"], row["yaw_rate"] = surge * math.exp(-seconds), slow * slow * bend, slow * bend
        row["pitch"], row["roll"] = math.radians(first.pitch), math.radians(first.roll)
    return rows


def run(host="127.0.0.1", port=2000, profile=PROFILE, record=None, wait=lambda: time.sleep(1.0)):
    """Feed the engine every step of CARLA until `wait`, called again and again, raises KeyboardInterrupt."""
    client = carla.Client(host, port)
    client.set_timeout(10.0)
    world = client.get_world()
    hero, road, row = hero_of(world), world.get_map(), np.zeros(1, RECORD)
    with motioncue.Engine(profile, record=record) as engine:

        def step(snapshot):  # CARLA calls it in a thread of its own, after each step
            if fill(row[0], snapshot, hero):
                engine.feed(row, ahead=ahead_of(road, snapshot.find(hero.id)))

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
