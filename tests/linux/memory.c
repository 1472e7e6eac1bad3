/* Writes shared memory as fast as it can, each state 200 numbers that are all its own number: `memory FILE FORM`.

   FORM is `end` (a counter before, its copy after the state), `odd` (a counter that is odd meanwhile), `plain` (the
   state's number first, as part of the state, then some microseconds of rest), or `slow` (likewise, 3 ms of rest, and every
   third state stays half written for 1 ms).  It ends when it is killed. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { NUMBERS = 200 };

int main(int argc, char **argv) {
    int file = argc > 2 ? open(argv[1], O_RDWR) : -1, i, form;
    volatile uint32_t *page;
    uint32_t step;
    if (file < 0) return 2;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) return 1;
    form = argv[2][0];
    for (step = 1;; step += 1) {
        if (form == 'e') page[0] = step;
        if (form == 'o') page[0] = 2 * step - 1;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        for (i = 0; i < NUMBERS; i++) {
            page[2 + i] = step;
            if (form == 's' && i == NUMBERS / 2 && step % 3 == 0) nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (form == 'e') page[1] = step;
        if (form == 'o') page[0] = 2 * step;
        if (form == 'p' || form == 's') {
            struct timespec rest = {0, form == 's' ? 3000000 : 20000};
            nanosleep(&rest, NULL);
        } else {
            for (i = 0; i < 2000; i++) __asm__ volatile("" ::: "memory");
        }
    }
}
