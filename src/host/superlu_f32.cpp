#include <core/scalar.hpp>

#if TRIFACTOR_HAS_F32
#include <slu_sdefs.h>

#define TRIFACTOR_SUPERLU_SCALAR float
#define TRIFACTOR_SUPERLU(name) s##name
#include <host/superlu_factor.hpp>
#endif
