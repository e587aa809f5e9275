/* trifactor for C, and for what can call C: every operation of the C++ library, for four scalars. docs/c.md explains.
 *
 * Functions return a trifactor_status and never throw; what went wrong last in this thread is trifactor_last_message().
 * A struct that begins with `size` is growing: set size to sizeof of the struct and the rest to zero, which stands for
 * the default of every field. Options may be NULL. Arrays and texts that a handle gives live as long as the handle.
 * One thread at a time uses a handle, but for plans, which many threads may share. _destroy takes NULL too.
 */
#ifndef TRIFACTOR_H
#define TRIFACTOR_H

#include <trifactor/dense.h>
#include <trifactor/sparse.h>

#endif
