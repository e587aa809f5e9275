#include <core/scalar.hpp>

#if TRIFACTOR_HAS_C64
#include <slu_zdefs.h>

#define TRIFACTOR_SUPERLU_SCALAR core::Complex<double>
#define TRIFACTOR_SUPERLU(name) z##name
#include <host/superlu_factor.hpp>
#endif
