// Everything.
#pragma once

#include <trifactor/cholesky.hpp>
#include <trifactor/info.hpp>
#include <trifactor/interrupt.hpp>
#include <trifactor/lu.hpp>
#include <trifactor/makers.hpp>
#include <trifactor/measure.hpp>
#include <trifactor/queue.hpp>
#include <trifactor/sparse.hpp>
#include <trifactor/sparse_lu.hpp>
