/* wide.h: functions for vectors of four doubles. They are compiled beside those
 * that all processors have, and chosen when the package runs. */
#ifndef SMC_WIDE_H
#define SMC_WIDE_H

#include <stdbool.h>

/* Not on Windows, where GCC does not align such vectors on the stack. */
#if defined(__GNUC__) && defined(__x86_64__) && !defined(_WIN32)
#define SMC_HAS_WIDE 1
#define SMC_WIDE __attribute__((target("avx2")))
static inline bool smc_is_wide(void) { return __builtin_cpu_supports("avx2"); }
#endif

#endif
