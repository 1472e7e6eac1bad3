/* Drives that follow their commands as real ones do: dead time, a lag of first or second order, friction, end stops.
 *
 * A command is in force from its tick, plus the dead time, until the next.  While the command u is constant the position
 * x follows x' = (u - x) / T, or x'' = w^2 (u - x) - 2 z w x'.  Both are solved exactly over each part of a tick, so
 * without friction and stops the positions at the ticks are those of the differential equation.
 *
 * Friction is a band f around the command: a drive at rest begins to move if |u - x| > f, and a moving one follows
 * u - f in the direction in which it moves (Coulomb friction of w^2 f; own derivation).  A drive of second order that
 * reverses within a part of a tick stands until its end.  A stop takes all speed.
 */
#ifndef MOTIONCUE_SERVO_H
#define MOTIONCUE_SERVO_H
#include <math.h>
#include <stdint.h>

typedef struct {
    double position, speed; /* factors that give the next distance from the command from the present distance and speed */
    double falls, keeps;    /* the same for the next speed */
    double duration;        /* [s] */
} mc_Motion;

typedef struct {
    mc_Motion parts[2];      /* the part of a tick before the next command comes into force, and the part after it */
    int64_t late;            /* whole ticks of dead time */
    int inertia;             /* whether it is of second order and keeps its speed */
    double low, high;        /* end stops */
    double friction;         /* half width of the band, in the unit of the position */
    double most_move, most_change; /* moves per tick and changes of move beyond which a tick counts as an overrun */
    double touch;            /* speed up to which reaching a stop is no hit [per s] */
} mc_Servo;

typedef struct {
    double x, v;                 /* position; speed [per s] */
    double move;                 /* move of the newest tick */
    double lowest, highest;      /* positions reached */
    double fastest, hardest;     /* largest move per tick and change of move */
    double impact;               /* largest speed at which it hit a stop [per s] */
    int64_t hits, fast, hard;    /* stops hit; ticks beyond speed and acceleration */
    int side;                    /* at the lower stop -1, at the upper 1, else 0 */
} mc_ServoState;

static inline void mc_servo_part(const mc_Servo *d, const mc_Motion *m, double command, mc_ServoState *s) {
    double speed = d->inertia ? s->v : 0.0, direction, distance, impact, before = s->x;
    if (!(m->duration > 0.0)) return;
    if (speed == 0.0 && fabs(command - s->x) <= d->friction) {
        s->v = 0.0;
        return;
    }
    direction = copysign(1.0, speed != 0.0 ? speed : command - s->x);
    command -= d->friction * direction;
    distance = s->x - command;
    s->x = command + m->position * distance + m->speed * speed;
    s->v = m->falls * distance + m->keeps * speed;
    if (d->friction > 0.0 && s->v * direction < 0.0) s->v = 0.0;
    if (s->x >= d->low && s->x <= d->high) {
        if (s->x > d->low && s->x < d->high) s->side = 0;
        return;
    }
    direction = s->x > d->high ? 1.0 : -1.0;
    impact = d->inertia ? fabs(s->v) : fabs(s->x - before) / m->duration;
    if (impact > d->touch && s->side != (int)direction) {
        s->hits++;
        s->impact = fmax(s->impact, impact);
    }
    s->side = (int)direction;
    s->x = direction > 0.0 ? d->high : d->low;
    s->v = 0.0;
}

/* Move one tick: `older` is the command in force at its beginning, `newer` the one that comes into force within it. */
static inline double mc_servo_step(const mc_Servo *d, double older, double newer, mc_ServoState *s) {
    const double before = s->x;
    double move, change;
    mc_servo_part(d, &d->parts[0], older, s);
    mc_servo_part(d, &d->parts[1], newer, s);
    move = s->x - before;
    change = fabs(move - s->move);
    s->fast += fabs(move) > d->most_move;
    s->hard += change > d->most_change;
    s->fastest = fmax(s->fastest, fabs(move));
    s->hardest = fmax(s->hardest, change);
    s->lowest = fmin(s->lowest, s->x);
    s->highest = fmax(s->highest, s->x);
    s->move = move;
    return s->x;
}
#endif
