#include <core/scalar.hpp>

#if TRIFACTOR_HAS_C32
#include <slu_cdefs.h>

#define TRIFACTOR_SUPERLU_SCALAR core::Complex<float>
#define TRIFACTOR_SUPERLU(name) c##name
#include <host/superlu_factor.hpp>
#endif
