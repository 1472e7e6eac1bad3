/* The interface between a stream server and the receiving loop: one client at a time, on any transport.  Others can be
   held beside it until they send something.  Only `wait` blocks, and only `wake` may be called from another thread. */
#ifndef MOTIONCUE_SERVER_H
#define MOTIONCUE_SERVER_H
#include <stdint.h>
#define MC_NOT_ALLOWED (-1)
#define MC_NO_DESCRIPTOR (-2) /* the system has no descriptor or memory for another connection */
#define MC_KNOCKS 1           /* a client waits to be accepted, held or turned away */
#define MC_SPEAKS 2           /* a held client has sent something, and waits to be accepted */
#define MC_QUIET 3            /* the held clients have been given their time and have sent nothing */
typedef struct {
    /* Wait until a byte or a client comes, the client goes, `wake` is called, or the timeout (< 0: none).  Return 0,
       MC_KNOCKS, MC_SPEAKS or MC_QUIET; while `deaf`, waiting clients are ignored. */
    int (*wait)(void *memory, int timeout_ms, int deaf);
    void (*wake)(void *memory);
    /* Make the waiting client the current one, or turn it away, and return 1; 0 if it has left meanwhile,
       MC_NOT_ALLOWED or MC_NO_DESCRIPTOR. */
    int (*accept)(void *memory);
    int (*refuse)(void *memory);
    /* Keep the waiting client beside the current one, and return as `accept`. */
    int (*hold)(void *memory);
    /* Turn all held clients away, and return their number. */
    int (*dismiss)(void *memory);
    /* Return the number of bytes received; 0 if the client has gone; -1 if there are none yet. */
    int (*receive)(void *memory, uint8_t *buffer, int room);
    /* Return the number of bytes taken; 0 if there is no room yet; -1 if the client has gone. */
    int (*send)(void *memory, const uint8_t *buffer, int size);
    /* Close the client; bytes already sent still arrive. */
    void (*close_client)(void *memory);
    void *memory;
} mc_server;
#endif
