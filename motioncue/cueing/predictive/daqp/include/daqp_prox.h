#ifndef DAQP_PROX_H
# define DAQP_PROX_H

# ifdef __cplusplus
extern "C" {
# endif // ifdef __cplusplus

#include "types.h"
#include "constants.h"
#include "daqp.h"

int daqp_prox(DAQPWorkspace *work);
int daqp_bnb_prox(DAQPWorkspace* work);

# ifdef __cplusplus
}
# endif // ifdef __cplusplus

#endif //ifndef DAQP_PROX_H
