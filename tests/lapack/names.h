/* LAPACK's names and integers: with WIDE those of SciPy's wheels, otherwise the usual ones. */
#ifdef WIDE
typedef long long integer;
#define NAME(name) scipy_##name##64_
#else
typedef int integer;
#define NAME(name) name
#endif
