/* A stream server as the receiving loop sees it: one client at a time, whatever carries the bytes.  Nothing here blocks
   but `wait`, and only `wake` may be called from another thread. */
#ifndef MOTIONCUE_SERVER_H
#define MOTIONCUE_SERVER_H
#include <stdint.h>
#define MC_NOT_ALLOWED (-1)
#define MC_NO_DESCRIPTOR (-2) /* the system has no descriptor or memory left for another connection */
typedef struct {
    /* Until a byte or a client comes, the client goes, or `wake`; < 0 is for ever.  True: somebody knocks.  While `deaf`,
       nobody who knocks is noticed. */
    int (*wait)(void *memory, int timeout_ms, int deaf);
    void (*wake)(void *memory);
    /* Who knocks becomes the client in place of the one there is, or is turned away: 1.  0 if it has left meanwhile,
       MC_NOT_ALLOWED or MC_NO_DESCRIPTOR. */
    int (*accept)(void *memory);
    int (*refuse)(void *memory);
    /* Bytes received; 0 if the client has gone; -1 if there is nothing now. */
    int (*receive)(void *memory, uint8_t *buffer, int room);
    /* Bytes taken; 0 if there is no room now; -1 if the client has gone. */
    int (*send)(void *memory, const uint8_t *buffer, int size);
    /* What has been sent still arrives. */
    void (*close_client)(void *memory);
    void *memory;
} mc_server;
#endif
