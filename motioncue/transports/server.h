/* A stream server as the receiving loop sees it: one client at a time, whatever carries the bytes.  Nothing here blocks
   but `wait`, and only `wake` may be called from another thread. */
#ifndef MOTIONCUE_SERVER_H
#define MOTIONCUE_SERVER_H
#include <stdint.h>
typedef struct {
    /* Until a byte or a client comes, the client goes, or `wake`; < 0 is for ever.  True: somebody knocks. */
    int (*wait)(void *memory, int timeout_ms);
    void (*wake)(void *memory);
    /* Who knocks becomes the client, or is turned away; false if it has left meanwhile, -1 if it may not come. */
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
