"""The supervisor's table by itself: what holds in every state, whatever conditions hold together."""

import itertools

from motioncue.safety.supervisor import TABLE, State

MOVING = ("ENGAGING", "RUNNING", "HOLDING")


def combinations():
    """Yield every set of conditions that can hold together."""
    operator = ("ended", "parked", "held", "engaged")
    given = ({"lost"}, {"overdue"}, {"fresh"}, {"broken", "lost"}, {"broken", "overdue"}, {"broken"})
    place = ({"at_neutral"}, set(), {"at_cue"})
    flags = itertools.product((False, True), repeat=4)
    for wanted, motion, fade, said in itertools.product(operator, given, place, list(flags)):
        others = set(itertools.compress(("faulted", "reset", "ready", "nobody"), said))
        yield {wanted, *fade, *others, *(motion - {"fresh"} if "nobody" in others else motion)}


def matching(state, conditions):
    """Return the first rule that applies, or None if the state stays."""
    return next((rule for rule in TABLE if rule[0] == state and set(rule[1]) <= conditions), None)


def after(state, conditions):
    rule = matching(state, conditions)
    return rule[2] if rule else state


def test_every_state_is_entered_and_left():
    names = {state.name for state in State if state.name != "STATES"}
    assert {rule[0] for rule in TABLE} == {rule[2] for rule in TABLE} == names
    assert all(rule[0] != rule[2] for rule in TABLE)


def test_no_rule_hides_behind_another():
    used = {id(matching(state, conditions)) for state in {rule[0] for rule in TABLE} for conditions in combinations()}
    assert {id(rule) for rule in TABLE} <= used


def test_park_and_end_always_stop_the_motion():
    for state, conditions in itertools.product(MOVING, combinations()):
        if conditions & {"ended", "parked"}:
            assert after(state, conditions) in ("PARKING", "FAULT")
    for state, conditions in itertools.product(("OFFLINE", "PARKING", "FAULT"), combinations()):
        if conditions & {"ended", "parked"}:
            assert after(state, conditions) in ("OFFLINE", "PARKING", "FAULT")


def test_a_cue_that_is_not_a_number_is_a_fault_wherever_there_is_a_cue():
    for state, conditions in itertools.product((*MOVING, "PARKING", "OFFLINE"), combinations()):
        if "faulted" in conditions:
            assert after(state, conditions) == "FAULT"


def test_a_fault_ends_only_at_neutral_by_an_operator_and_only_in_offline():
    for conditions in combinations():
        expected = "OFFLINE" if {"reset", "at_neutral", "ready"} <= conditions else "FAULT"
        assert after("FAULT", conditions) == expected


def test_motion_that_does_not_continue_is_never_followed():
    for state, conditions in itertools.product(MOVING, combinations()):
        if "broken" in conditions or {"lost", "engaged"} <= conditions:
            assert after(state, conditions) in ("PARKING", "FAULT")
    for conditions in combinations():
        if "broken" in conditions:
            assert after("PARKING", conditions) in ("PARKING", "OFFLINE", "FAULT")


def test_a_platform_that_nobody_hears_for_is_parked_whoever_holds_it():
    for state, conditions in itertools.product(MOVING, combinations()):
        if "nobody" in conditions:
            assert after(state, conditions) in ("PARKING", "FAULT")
    for state, conditions in itertools.product(("OFFLINE", "PARKING"), combinations()):
        if "nobody" in conditions:
            assert after(state, conditions) in ("OFFLINE", "PARKING", "FAULT")


def test_neutral_is_left_only_for_motion_that_an_operator_allows():
    for conditions in combinations():
        to = (
            "FAULT"
            if "faulted" in conditions
            else "ENGAGING"
            if {"engaged", "fresh", "ready"} <= conditions
            else "OFFLINE"
        )
        assert after("OFFLINE", conditions) == to


def test_while_nothing_changes_the_state_settles():
    # One rule a tick; with the same operator and the same input the fade moves and the state comes to rest.
    for state, conditions in itertools.product({rule[0] for rule in TABLE}, combinations()):
        steady = conditions - {"at_neutral", "at_cue", "faulted", "reset"}
        place = 0 if "at_neutral" in conditions else 2 if "at_cue" in conditions else 1
        faulted, reset = "faulted" in conditions, "reset" in conditions
        seen, moves = [], 0
        for _ in range(12):
            now = steady | {("at_neutral", "between", "at_cue")[place]}
            if state == "OFFLINE":
                now = (now - {"broken"}) | ({"fresh"} if not now & {"lost", "overdue", "nobody"} else set())
            now |= ({"faulted"} if faulted else set()) | ({"reset"} if reset else set())
            before, state = state, after(state, now)
            moves += state != before
            if state == "ENGAGING":
                steady = (steady - {"broken"}) | ({"fresh"} if not steady & {"lost", "overdue", "nobody"} else set())
            faulted = faulted and state != "OFFLINE"
            reset = reset and state == "FAULT"
            place = min(2, place + 1) if state in MOVING else max(0, place - 1)
            seen.append(state)
        assert len(set(seen[-4:])) == 1
        assert moves <= 5
