#include <core/scalar.hpp>

#if TRIFACTOR_HAS_F64
#include <slu_ddefs.h>

#define TRIFACTOR_SUPERLU_SCALAR double
#define TRIFACTOR_SUPERLU(name) d##name
#include <host/superlu_factor.hpp>
#endif
