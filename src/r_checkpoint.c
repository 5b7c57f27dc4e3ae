/* r_checkpoint.c: what R code needs of bytes and of objects that come from a
 * file. */
#include "r_interface.h"

#include <stdint.h>
#include <stdio.h>

/* The 64-bit FNV-1a hash of a vector of bytes, in hexadecimal. Each step is a
 * bijection, so that two vectors that differ in a single byte have different
 * hashes. */
SEXP r_hash(SEXP bytes) {
  const Rbyte *byte = RAW(bytes);
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  char text[17];
  for (R_xlen_t i = 0; i < XLENGTH(bytes); i++)
    hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
  snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
  return Rf_mkString(text);
}

/* Whether an object has as many elements as its dimensions and its names say:
 * what R reads from a file need not. */
static bool is_complete(SEXP x) {
  SEXP dim = Rf_getAttrib(x, R_DimSymbol);
  SEXP names = Rf_getAttrib(x, R_NamesSymbol);
  if (names != R_NilValue && dim == R_NilValue &&
      (!Rf_isString(names) || XLENGTH(names) != XLENGTH(x)))
    return false;
  if (dim == R_NilValue)
    return true;
  double size = 1.0;
  for (R_xlen_t i = 0; Rf_isInteger(dim) && i < XLENGTH(dim); i++)
    size *= INTEGER(dim)[i] >= 0 ? INTEGER(dim)[i] : R_NaN;
  return Rf_isInteger(dim) && XLENGTH(dim) > 0 && size == (double)XLENGTH(x);
}

static bool is_data(SEXP x);

static bool are_data(SEXP list) {
  for (R_xlen_t i = 0; i < Rf_xlength(list); i++)
    if (!is_data(VECTOR_ELT(list, i)))
      return false;
  return true;
}

static bool is_data(SEXP x) {
  R_CheckStack();
  switch (TYPEOF(x)) {
  case NILSXP:
    return true;
  case LGLSXP:
  case INTSXP:
  case REALSXP:
  case CPLXSXP:
  case STRSXP:
  case RAWSXP:
    break;
  case VECSXP:
    if (!are_data(x))
      return false;
    break;
  default:
    return false;
  }
  SEXP call = PROTECT(Rf_lang2(Rf_install("attributes"), x));
  SEXP attributes = PROTECT(Rf_eval(call, R_BaseEnv));
  bool result = is_complete(x) && are_data(attributes);
  UNPROTECT(2);
  return result;
}

/* x where it is vectors and lists of these alone, with such attributes, else
 * NULL. R code would run a promise from a file by looking at it. */
SEXP r_data_or_null(SEXP x) { return is_data(x) ? x : R_NilValue; }
