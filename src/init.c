/* init.c: what the package's library shows to R. */
#include "r_interface.h"

#include "targets.h"

#include <R_ext/Rdynload.h>

/* By way of void (*)(void), the one function type that all others may be
 * converted to and from without a warning. */
#define ROUTINE(f) ((DL_FUNC)(void (*)(void))(f))

static const R_CallMethodDef call_methods[] = {
    {"r_smc_run", ROUTINE(r_smc_run), 3},
    {"r_evaluate", ROUTINE(r_evaluate), 4},
    {"r_chain", ROUTINE(r_chain), 5},
    {"r_precision_pivots", ROUTINE(r_precision_pivots), 2},
    {"r_at_each_point", ROUTINE(r_at_each_point), 4},
    {"r_bind_points", ROUTINE(r_bind_points), 2},
    {"r_multiply", ROUTINE(r_multiply), 2},
    {"r_multiply_rows", ROUTINE(r_multiply_rows), 4},
    {"r_cross_product", ROUTINE(r_cross_product), 2},
    {"r_put_rows", ROUTINE(r_put_rows), 3},
    {"r_with_room", ROUTINE(r_with_room), 2},
    {"r_sweep", ROUTINE(r_sweep), 3},
    {"r_scaled_rows", ROUTINE(r_scaled_rows), 4},
    {"r_weighted_sums", ROUTINE(r_weighted_sums), 5},
    {"r_weighty_rows", ROUTINE(r_weighty_rows), 2},
    {"r_concentration", ROUTINE(r_concentration), 2},
    {"r_number_groups", ROUTINE(r_number_groups), 1},
    {"r_t_values", ROUTINE(r_t_values), 5},
    {"r_climb", ROUTINE(r_climb), 4},
    {"r_normals_along", ROUTINE(r_normals_along), 5},
    {"r_normal_factor", ROUTINE(r_normal_factor), 3},
    {"r_refine", ROUTINE(r_refine), 5},
    {"r_match_normal", ROUTINE(r_match_normal), 6},
    {"r_bridge", ROUTINE(r_bridge), 5},
    {"r_tail_shapes", ROUTINE(r_tail_shapes), 7},
    {"r_carries_gradient", ROUTINE(r_carries_gradient), 1},
    {"r_file_of_routine", ROUTINE(r_file_of_routine), 1},
    {"r_hash", ROUTINE(r_hash), 1},
    {"r_data_or_null", ROUTINE(r_data_or_null), 1},
    {"r_bridgestan_describe", ROUTINE(r_bridgestan_describe), 1},
    {"r_bridgestan_outputs", ROUTINE(r_bridgestan_outputs), 3},
    {"r_bridgestan_why", ROUTINE(r_bridgestan_why), 2},
    {NULL, NULL, 0}};

/* The built-in targets, found by name as those of any other library are. */
static const R_CMethodDef targets[] = {
    {"target_gaussian", ROUTINE(target_gaussian), -1, NULL},
    {"target_gaussian_init", ROUTINE(target_gaussian_init), -1, NULL},
    {"target_funnel", ROUTINE(target_funnel), -1, NULL},
    {"target_brownian", ROUTINE(target_brownian), -1, NULL},
    {"target_sonar", ROUTINE(target_sonar), -1, NULL},
    {"target_sonar_init", ROUTINE(target_sonar_init), -1, NULL},
    {"target_pines", ROUTINE(target_pines), -1, NULL},
    {"target_pines_init", ROUTINE(target_pines_init), -1, NULL},
    {"target_bridgestan", ROUTINE(target_bridgestan), -1, NULL},
    {"target_bridgestan_init", ROUTINE(target_bridgestan_init), -1, NULL},
    {"target_bridgestan_release", ROUTINE(target_bridgestan_release), -1, NULL},
    {NULL, NULL, 0, NULL}};

void R_init_autosmc(DllInfo *dll) {
  R_registerRoutines(dll, targets, call_methods, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
  R_RegisterCCallable("autosmc", "autosmc_run", ROUTINE(r_api_run));
}
