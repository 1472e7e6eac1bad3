/* Angles of every size and sign, to be built with -fsanitize=undefined: prints the worst error beside the C library. */
#include "motioncue/core/real.h"
#include <stdio.h>

int main(void) {
    double worst = 0.0;
    for (int i = 0; i < 200000; i++) {
        const double angle = (i % 2 ? 1.0 : -1.0) * ldexp(1.0 + i / 200000.0, i % 1080 - 60);
        mc_Turn t;
        mc_turn(&t, angle);
        worst = fmax(worst, fmax(fabs(t.sine - sin(angle)), fabs(t.cosine - cos(angle))));
    }
    printf("%s\n", worst < 2.5e-16 ? "as the C library" : "other than the C library");
    return 0;
}
