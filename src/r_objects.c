/* r_objects.c: R's lists, matrices, functions and memory. */
#include "r_interface.h"

#include <string.h>

SEXP r_element(SEXP list, const char *name) {
  SEXP names = Rf_getAttrib(list, R_NamesSymbol);
  for (R_xlen_t i = 0; i < Rf_xlength(names) && i < Rf_xlength(list); i++)
    if (strcmp(CHAR(STRING_ELT(names, i)), name) == 0)
      return VECTOR_ELT(list, i);
  return R_NilValue;
}

SEXP r_new_list(const char *const *names, int n) {
  SEXP list = PROTECT(Rf_allocVector(VECSXP, n));
  SEXP list_names = PROTECT(Rf_allocVector(STRSXP, n));
  for (int i = 0; i < n; i++)
    SET_STRING_ELT(list_names, i, Rf_mkChar(names[i]));
  Rf_setAttrib(list, R_NamesSymbol, list_names);
  UNPROTECT(2);
  return list;
}

void r_name_columns(SEXP x, SEXP names) {
  if (names == R_NilValue)
    return;
  SEXP both = PROTECT(Rf_allocVector(VECSXP, 2));
  SET_VECTOR_ELT(both, 1, names);
  Rf_setAttrib(x, R_DimNamesSymbol, both);
  UNPROTECT(1);
}

/* Few rows at a time, so that what is written stays in the cache. */
void r_transpose_part(int rows, int columns, const double *in, int in_rows,
                      double *out, int out_rows) {
  enum { block = 8 };
  for (int from = 0; from < rows; from += block) {
    int to = rows - from < block ? rows : from + block;
    for (int j = 0; j < columns; j++)
      for (int i = from; i < to; i++)
        out[j + (R_xlen_t)out_rows * i] = in[i + (R_xlen_t)in_rows * j];
  }
}

void r_transpose(int rows, int columns, const double *in, double *out) {
  r_transpose_part(rows, columns, in, rows, out, columns);
}

SEXP r_call_package(const char *function, SEXP argument) {
  SEXP name = PROTECT(Rf_mkString("autosmc"));
  SEXP home = PROTECT(R_FindNamespace(name));
  SEXP call = PROTECT(Rf_lang2(Rf_install(function), argument));
  SEXP result = Rf_eval(call, home);
  UNPROTECT(3);
  return result;
}

void r_lack_memory(double bytes) {
  SEXP needed = PROTECT(Rf_ScalarReal(bytes));
  r_call_package("abort_memory", needed);
  UNPROTECT(1);
}

typedef struct request {
  SEXPTYPE type;
  double length;
} request;

static SEXP allocate(void *data) {
  const request *wanted = data;
  return Rf_allocVector(wanted->type, (R_xlen_t)wanted->length);
}

static SEXP no_memory(SEXP condition, void *data) {
  (void)condition, (void)data;
  return R_NilValue;
}

SEXP r_try_allocate(SEXPTYPE type, double length) {
  request wanted = {type, length};
  if (length > (double)R_XLEN_T_MAX)
    return R_NilValue;
  return R_tryCatchError(allocate, &wanted, no_memory, NULL);
}
