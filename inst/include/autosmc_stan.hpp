/* autosmc_stan.hpp: a Stan program as a target of autosmc.
 *
 * target_stan() includes this file behind the C++ that stanc makes of a
 * program, in which the program is the class `stan_model`. The library that
 * results has eight routines: init, log_density and release of the types of
 * autosmc.h; settle; and four that R asks with .Call(), describe, outputs,
 * unconstrain and why. `data` is always the list
 *
 *   values  named list: numeric arrays; or a string, which says why what was
 *           given under that name cannot be data
 *   seed    a number from 0 to 2^32 - 1, for the program's random numbers
 *   print   an R function of a string: what the program has printed
 *   file    the name of the program's file, for messages (string)
 *
 * With STAN_THREADS log_density may be called from several threads at once, all
 * with the same context. What the program says there, and throws, is kept until
 * R's main thread calls settle.
 *
 * Two worlds meet here that must not cross each other's frames. Code in the
 * namespace autosmc_stan is C++: it is entered by functions that are noexcept,
 * and calls nothing of R's that may jump. The routines at the end are C in all
 * but name: no object with a destructor lives in them, so R may jump.
 */
#ifndef AUTOSMC_STAN_HPP
#define AUTOSMC_STAN_HPP

#include <autosmc.h>

#include <climits>
#include <cstring>
#include <mutex>

#define R_NO_REMAP
#define STRICT_R_HEADERS
#include <R_ext/Utils.h>
#include <R_ext/Visibility.h>
#include <Rinternals.h>

/* Raised when what R and these routines tell each other changes. */
#define AUTOSMC_STAN_INTERFACE 6

namespace autosmc_stan {

/* errors ------------------------------------------------------------------ */

struct message {
  const char *file;
  char text[4096];
};

/* Programs of the same text share a library: it has this name for their files.
 */
static const char any_file[] = "autosmc_stan_file";

inline void write(message &out, const char *text) noexcept {
  size_t n = 0, room = sizeof out.text - 1, skip = sizeof any_file - 1;
  while (*text && n < room) {
    if (std::strncmp(text, any_file, skip) != 0) {
      out.text[n++] = *text++;
      continue;
    }
    size_t length = std::min(std::strlen(out.file), room - n);
    std::memcpy(out.text + n, out.file, length);
    n += length;
    text += skip;
  }
  out.text[n] = '\0';
}

/* Call f; whether it returned. Why it did not is then in `out`. */
template <typename F> bool guarded(message &out, F f) noexcept {
  try {
    f();
    return true;
  } catch (const std::exception &e) {
    write(out, e.what());
  } catch (...) {
    write(out, "an unknown C++ exception");
  }
  return false;
}

/* data -------------------------------------------------------------------- */

inline SEXP element(SEXP list, const char *name) {
  SEXP names = Rf_getAttrib(list, R_NamesSymbol);
  for (R_xlen_t i = 0; i < Rf_xlength(list); i++)
    if (std::strcmp(CHAR(STRING_ELT(names, i)), name) == 0)
      return VECTOR_ELT(list, i);
  return R_NilValue;
}

using shape = std::vector<size_t>;

inline size_t size_of(const shape &dims) {
  size_t n = 1;
  for (size_t extent : dims)
    n *= extent;
  return n;
}

inline std::string show(const shape &dims) {
  if (dims.empty())
    return "a single number";
  std::string text = dims.size() == 1 ? "length " : "dimensions ";
  for (size_t i = 0; i < dims.size(); i++)
    text += (i ? " x " : "") + std::to_string(dims[i]);
  return text;
}

/* The values of a list of R's, read where they are. */
class r_values : public stan::io::var_context {
  struct entry {
    const double *values;
    size_t length;
    shape dims; /* empty for a single number */
    std::string complaint;
  };
  std::map<std::string, entry> entries_;

  const entry *find(const std::string &name) const {
    auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }

  static bool is_int(double value) {
    return value >= INT_MIN && value <= INT_MAX && value == std::floor(value);
  }

  static void check_whole(const std::string &name, const entry &given) {
    for (size_t i = 0; i < given.length; i++)
      if (!is_int(given.values[i])) {
        std::ostringstream text;
        text << "`" << name << "` is declared as int, but its element " << i + 1
             << " is " << given.values[i] << ".";
        throw std::runtime_error(text.str());
      }
  }

  /* "a whole number", or "numbers, length 4". */
  static std::string show_declared(const std::string &type,
                                   const shape &declared) {
    std::string number = type == "int" ? "whole number" : "number";
    return declared.empty() ? "a " + number : number + "s, " + show(declared);
  }

  static bool fits(const entry &given, const shape &declared) {
    return given.dims == declared ||
           (given.length == 1 && given.dims.empty() && size_of(declared) == 1);
  }

  /* A column that is still a matrix. */
  static std::string cure(const std::string &name, const shape &given,
                          const shape &declared) {
    bool is_column = declared.size() == 1 && given.size() == 2 &&
                     given[0] == declared[0] && given[1] == 1;
    return is_column ? " It has a single column: give `" + name + "[, 1]`."
                     : "";
  }

  template <typename T> std::vector<T> values(const std::string &name) const {
    const entry *given = find(name);
    if (!given)
      return {};
    return std::vector<T>(given->values, given->values + given->length);
  }

  template <typename Keep>
  void list_names(std::vector<std::string> &names, Keep keep) const {
    names.clear();
    for (const auto &item : entries_)
      if (keep(item.first))
        names.push_back(item.first);
  }

public:
  /* list: its numeric arrays are in memory, see unfold(). */
  explicit r_values(SEXP list) {
    SEXP names = Rf_getAttrib(list, R_NamesSymbol);
    for (R_xlen_t i = 0; i < Rf_xlength(list); i++) {
      SEXP value = VECTOR_ELT(list, i);
      entry &item = entries_[CHAR(STRING_ELT(names, i))];
      item = entry{nullptr, 0, {}, ""};
      if (TYPEOF(value) == STRSXP) {
        item.complaint = CHAR(STRING_ELT(value, 0));
        continue;
      }
      item.values = REAL(value);
      item.length = static_cast<size_t>(Rf_xlength(value));
      SEXP dims = Rf_getAttrib(value, R_DimSymbol);
      for (R_xlen_t j = 0; j < Rf_xlength(dims); j++)
        item.dims.push_back(static_cast<size_t>(INTEGER(dims)[j]));
      if (dims == R_NilValue && item.length != 1)
        item.dims.push_back(item.length);
    }
  }

  void validate_dims(const std::string &, const std::string &name,
                     const std::string &type,
                     const shape &declared) const override {
    if (!declared.empty() && size_of(declared) == 0)
      return; /* nothing is read */
    const entry *given = find(name);
    if (!given)
      throw std::runtime_error("`" + name +
                               "` is missing; the program declares " +
                               show_declared(type, declared) + ".");
    if (!given->complaint.empty())
      throw std::runtime_error("`" + name + "` " + given->complaint);
    if (type != "int" && type != "double")
      throw std::runtime_error("`" + name + "` is declared as " + type +
                               ", which target_stan() cannot hand over.");
    if (!fits(*given, declared))
      throw std::runtime_error("`" + name + "` has " + show(given->dims) +
                               "; the program declares " + show(declared) +
                               "." + cure(name, given->dims, declared));
    if (type == "int")
      check_whole(name, *given);
  }

  bool contains_r(const std::string &name) const override { return find(name); }
  bool contains_i(const std::string &name) const override {
    const entry *given = find(name);
    return given &&
           std::all_of(given->values, given->values + given->length, is_int);
  }
  std::vector<double> vals_r(const std::string &name) const override {
    return values<double>(name);
  }
  std::vector<int> vals_i(const std::string &name) const override {
    return values<int>(name);
  }
  /* The real parts come first, since the last dimension is the slowest. */
  std::vector<std::complex<double>>
  vals_c(const std::string &name) const override {
    std::vector<double> parts = vals_r(name);
    size_t n = parts.size() / 2;
    std::vector<std::complex<double>> out(n);
    for (size_t i = 0; i < n; i++)
      out[i] = {parts[i], parts[i + n]};
    return out;
  }
  shape dims_r(const std::string &name) const override {
    const entry *given = find(name);
    return given ? given->dims : shape();
  }
  shape dims_i(const std::string &name) const override { return dims_r(name); }
  void names_r(std::vector<std::string> &names) const override {
    list_names(names, [](const std::string &) { return true; });
  }
  void names_i(std::vector<std::string> &names) const override {
    list_names(names,
               [this](const std::string &name) { return contains_i(name); });
  }
};

/* the program with its data ----------------------------------------------- */

/* Columns of a program's outputs, up to the end of each of its blocks. */
struct description {
  std::vector<std::string> unconstrained, outputs;
  size_t n_parameters, n_transformed;
};

class program {
  unsigned int seed_;
  std::ostringstream printed_;
  stan_model model_; /* behind the stream, to which its constructor prints */
  std::string shown_;
  std::mutex lock_; /* of what is printed and thrown by log_density */
  message thrown_;
  const double *thrown_at_; /* the first points of which there was something */

  using point = Eigen::Map<const Eigen::VectorXd>;

  double value(const double *x, int d, std::ostream &printed) const {
    Eigen::VectorXd u = point(x, d);
    return model_.template log_prob<false, true>(u, &printed);
  }

  /* The tape of a point is freed as `tape` goes, also by an exception. */
  double value_and_gradient(const double *x, int d, double *gradient,
                            std::ostream &printed) const {
    stan::math::nested_rev_autodiff tape;
    Eigen::Matrix<stan::math::var, Eigen::Dynamic, 1> u = point(x, d);
    stan::math::var log_density =
        model_.template log_prob<false, true>(u, &printed);
    log_density.grad();
    for (int i = 0; i < d; i++)
      gradient[i] = u[i].adj();
    return log_density.val();
  }

  /* The ODE and root solvers of SUNDIALS have no exception of their own. */
  static bool is_solver_failure(const std::runtime_error &e) {
    return std::strstr(e.what(), "failed with error flag") != nullptr;
  }

public:
  /* These belong to R, which keeps them as long as this. */
  SEXP print;
  const char *file;

  program(r_values &&values, unsigned int seed, SEXP print_, const char *file_)
      : seed_(seed), model_(values, seed, &printed_), thrown_{file_, ""},
        thrown_at_(nullptr), print(print_), file(file_) {}

  /* The memory of the tape stays with Stan otherwise, for the next point. */
  ~program() {
    if (stan::math::empty_nested()) {
      stan::math::recover_memory();
      stan::math::ChainableStack::instance_->memalloc_.free_all();
    }
  }

  /* A failed check, reject(), and a solver that gives up make a point
   * impossible. What else is thrown stops the run: fatal_error(), or an index
   * out of range. */
  void evaluate(int d, const double *x, double *logp, double *gradient,
                std::ostream &printed) const {
    try {
      *logp = gradient ? value_and_gradient(x, d, gradient, printed)
                       : value(x, d, printed);
      return;
    } catch (const std::domain_error &) {
    } catch (const std::runtime_error &e) {
      if (!is_solver_failure(e))
        throw;
    }
    *logp = -std::numeric_limits<double>::infinity();
    if (gradient)
      std::fill(gradient, gradient + d, 0.0);
  }

  void describe(description &out) const {
    std::vector<std::string> names;
    model_.unconstrained_param_names(out.unconstrained, false, false);
    model_.constrained_param_names(names, false, false);
    out.n_parameters = names.size();
    names.clear();
    model_.constrained_param_names(names, true, false);
    out.n_transformed = names.size() - out.n_parameters;
    model_.constrained_param_names(out.outputs, true, true);
  }

  /* x is n x d and out n x n_columns, as R has matrices; columns: which of the
   * width that these blocks have, from 1. Where the program throws, what was
   * not written yet is NaN; returns how often it did, with what it threw first.
   */
  int outputs(int n, int d, const double *x, bool transformed, bool generated,
              int width, int n_columns, const int *columns, double *out,
              message &first) {
    stan::rng_t rng = stan::services::util::create_rng(seed_, 1);
    int failed = 0;
    Eigen::VectorXd u(d), row;
    for (int k = 0; k < n; k++) {
      for (int i = 0; i < d; i++)
        u[i] = x[k + static_cast<size_t>(n) * i];
      try {
        model_.write_array(rng, u, row, transformed, generated, &printed_);
      } catch (const std::exception &e) {
        if (!failed++)
          write(first, e.what());
        if (row.size() != width)
          row = Eigen::VectorXd::Constant(
              width, std::numeric_limits<double>::quiet_NaN());
      }
      for (int j = 0; j < n_columns; j++)
        out[k + static_cast<size_t>(n) * j] = row[columns[j] - 1];
    }
    return failed;
  }

  /* The inverse of outputs(), for the parameters alone: x is n x width and out
   * n x d. Rows that are no values of the parameters are NaN; returns how many
   * they are, with why the first of them is not. */
  int unconstrain(int n, int width, const double *x, int d, double *out,
                  message &first) {
    int failed = 0;
    Eigen::VectorXd row(width), u;
    for (int k = 0; k < n; k++) {
      for (int j = 0; j < width; j++)
        row[j] = x[k + static_cast<size_t>(n) * j];
      try {
        model_.unconstrain_array(row, u, &printed_);
      } catch (const std::exception &e) {
        if (!failed++)
          write(first, e.what());
        u = Eigen::VectorXd::Constant(d,
                                      std::numeric_limits<double>::quiet_NaN());
      }
      for (int i = 0; i < d; i++)
        out[k + static_cast<size_t>(n) * i] = u[i];
    }
    return failed;
  }

  /* What the program throws at the first of the points at which it does; x is
   * n x d. Returns whether there is one. */
  bool why(int n, int d, const double *x, message &thrown) {
    Eigen::VectorXd u(d);
    for (int k = 0; k < n; k++) {
      for (int i = 0; i < d; i++)
        u[i] = x[k + static_cast<size_t>(n) * i];
      if (!guarded(thrown, [&] { value(u.data(), d, printed_); }))
        return true;
    }
    return false;
  }

  /* What points from x on have printed, and, unless they are done, thrown. */
  void keep(const std::string &printed, bool done, const message &thrown,
            const double *x) {
    if (done && printed.empty())
      return;
    std::lock_guard<std::mutex> guard(lock_);
    printed_ << printed;
    if (!done && (!thrown_at_ || x < thrown_at_)) {
      thrown_ = thrown;
      thrown_at_ = x;
    }
  }

  /* What was thrown since the last call; NULL for nothing. */
  const message *take_thrown() {
    bool is_new = thrown_at_;
    thrown_at_ = nullptr;
    return is_new ? &thrown_ : nullptr;
  }

  /* What was printed since the last call; NULL for nothing. */
  const char *take_printed() {
    shown_ = printed_.str();
    if (shown_.empty())
      return nullptr;
    printed_.str("");
    return shown_.c_str();
  }
};

/* into C++ ---------------------------------------------------------------- */

inline program *make(SEXP data, message &why) noexcept {
  program *made = nullptr;
  guarded(why, [&] {
    double seed = REAL(element(data, "seed"))[0];
    made = new program(r_values(element(data, "values")),
                       static_cast<unsigned int>(seed), element(data, "print"),
                       why.file);
  });
  return made;
}

inline void destroy(program *p) noexcept { delete p; }

/* On any thread, each of which has a tape of its own. Returns whether all n
 * points are done. */
inline bool evaluate(program *p, int d, int n, const double *x, double *logp,
                     double *gradient) noexcept {
#ifdef STAN_THREADS
  static thread_local stan::math::ChainableStack tape;
#endif
  message thrown = {p->file, ""};
  bool done = false;
  guarded(thrown, [&] {
    std::ostringstream printed;
    done = guarded(thrown, [&] {
      for (size_t k = 0, at = 0; k < static_cast<size_t>(n); k++, at += d)
        p->evaluate(d, x + at, logp + k, gradient ? gradient + at : nullptr,
                    printed);
    });
    p->keep(printed.str(), done, thrown, x);
  });
  return done;
}

inline const message *take_thrown(program *p) noexcept {
  return p->take_thrown();
}

inline description *describe(const program *p, message &why) noexcept {
  description *made = nullptr;
  if (!guarded(why, [&] { p->describe(*(made = new description)); })) {
    delete made;
    return nullptr;
  }
  return made;
}

inline void destroy(description *d) noexcept { delete d; }

inline int outputs(program *p, int n, int d, const double *x, bool transformed,
                   bool generated, int width, int n_columns, const int *columns,
                   double *out, message &first) noexcept {
  int failed = -1;
  guarded(first, [&] {
    failed = p->outputs(n, d, x, transformed, generated, width, n_columns,
                        columns, out, first);
  });
  return failed;
}

inline int unconstrain(program *p, int n, int width, const double *x, int d,
                       double *out, message &first) noexcept {
  int failed = -1;
  guarded(first, [&] { failed = p->unconstrain(n, width, x, d, out, first); });
  return failed;
}

inline bool why(program *p, int n, int d, const double *x,
                message &thrown) noexcept {
  bool found = false;
  guarded(thrown, [&] { found = p->why(n, d, x, thrown); });
  return found;
}

inline const char *take_printed(program *p) noexcept {
  message ignored = {"", ""}; /* memory has run out: what was printed is lost */
  const char *text = nullptr;
  guarded(ignored, [&] { text = p->take_printed(); });
  return text;
}

/* C in all but name ------------------------------------------------------- */

/* R makes the values of 1:10, say, only when they are asked for, and may jump
 * then. */
inline void unfold(SEXP data) {
  SEXP values = element(data, "values");
  for (R_xlen_t i = 0; i < Rf_xlength(values); i++) {
    SEXP value = VECTOR_ELT(values, i);
    if (TYPEOF(value) == REALSXP)
      (void)REAL(value);
    else if (TYPEOF(value) != STRSXP)
      Rf_error("internal error: data that are neither numbers nor a complaint");
  }
}

inline const char *file_of(SEXP data) {
  return CHAR(STRING_ELT(element(data, "file"), 0));
}

/* What has stopped the program may be Ctrl-C. */
[[noreturn]] inline void fail(const message &why) {
  R_CheckUserInterrupt();
  Rf_error("%s", why.text);
}

inline void show_printed(program *p) {
  const char *text = take_printed(p);
  if (!text)
    return;
  SEXP string = PROTECT(Rf_mkString(text));
  SEXP call = PROTECT(Rf_lang2(p->print, string));
  Rf_eval(call, R_GlobalEnv);
  UNPROTECT(2);
}

inline program *begin(SEXP data) {
  message why = {file_of(data), ""};
  unfold(data);
  program *p = make(data, why);
  if (!p)
    fail(why);
  return p;
}

/* A task that .Call() asks for: what it has made of C++ is destroyed when it
 * has ended, also when R has jumped. */
struct task {
  SEXP data, x, blocks, columns;
  program *p;
  description *names;
};

inline void end(void *data) {
  task *t = static_cast<task *>(data);
  destroy(t->p);
  destroy(t->names);
}

inline SEXP as_strings(const std::vector<std::string> &strings) {
  R_xlen_t n = static_cast<R_xlen_t>(strings.size());
  SEXP out = PROTECT(Rf_allocVector(STRSXP, n));
  for (R_xlen_t i = 0; i < n; i++)
    SET_STRING_ELT(out, i, Rf_mkCharCE(strings[i].c_str(), CE_UTF8));
  UNPROTECT(1);
  return out;
}

/* Sets up the program and the names of its variables. */
inline void begin_named(task *t, message &why) {
  t->p = begin(t->data);
  t->names = describe(t->p, why);
  if (!t->names)
    fail(why);
}

inline SEXP describe_task(void *data) {
  task *t = static_cast<task *>(data);
  message why = {file_of(t->data), ""};
  begin_named(t, why);
  const char *fields[] = {"unconstrained", "outputs", "n_parameters",
                          "n_transformed", ""};
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  SET_VECTOR_ELT(out, 0, as_strings(t->names->unconstrained));
  SET_VECTOR_ELT(out, 1, as_strings(t->names->outputs));
  SET_VECTOR_ELT(out, 2, Rf_ScalarInteger(int(t->names->n_parameters)));
  SET_VECTOR_ELT(out, 3, Rf_ScalarInteger(int(t->names->n_transformed)));
  show_printed(t->p);
  UNPROTECT(1);
  return out;
}

/* list(values, failed, message); an error where not even that is known. */
inline SEXP as_result(program *p, SEXP values, int failed,
                      const message &first) {
  if (failed < 0)
    fail(first);
  const char *fields[] = {"values", "failed", "message", ""};
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  SET_VECTOR_ELT(out, 0, values);
  SET_VECTOR_ELT(out, 1, Rf_ScalarInteger(failed));
  SET_VECTOR_ELT(out, 2, Rf_mkString(first.text));
  show_printed(p);
  UNPROTECT(1);
  return out;
}

inline SEXP outputs_task(void *data) {
  task *t = static_cast<task *>(data);
  message first = {file_of(t->data), ""};
  begin_named(t, first);
  bool transformed = LOGICAL(t->blocks)[0], generated = LOGICAL(t->blocks)[1];
  size_t width = t->names->outputs.size();
  if (!generated)
    width =
        t->names->n_parameters + (transformed ? t->names->n_transformed : 0);
  else if (!transformed)
    width -= t->names->n_transformed;
  int n = Rf_nrows(t->x), d = Rf_ncols(t->x);
  int n_columns = Rf_length(t->columns);
  SEXP values = PROTECT(Rf_allocMatrix(REALSXP, n, n_columns));
  int failed =
      outputs(t->p, n, d, REAL(t->x), transformed, generated, int(width),
              n_columns, INTEGER(t->columns), REAL(values), first);
  SEXP out = as_result(t->p, values, failed, first);
  UNPROTECT(1);
  return out;
}

inline SEXP unconstrain_task(void *data) {
  task *t = static_cast<task *>(data);
  message first = {file_of(t->data), ""};
  begin_named(t, first);
  int n = Rf_nrows(t->x), d = int(t->names->unconstrained.size());
  SEXP values = PROTECT(Rf_allocMatrix(REALSXP, n, d));
  int failed =
      unconstrain(t->p, n, Rf_ncols(t->x), REAL(t->x), d, REAL(values), first);
  SEXP out = as_result(t->p, values, failed, first);
  UNPROTECT(1);
  return out;
}

/* A string, or NULL. */
inline SEXP why_task(void *data) {
  task *t = static_cast<task *>(data);
  message thrown = {file_of(t->data), ""};
  t->p = begin(t->data);
  if (!why(t->p, Rf_nrows(t->x), Rf_ncols(t->x), REAL(t->x), thrown))
    return R_NilValue;
  R_CheckUserInterrupt();
  return Rf_mkString(thrown.text);
}

} // namespace autosmc_stan

/* routines ---------------------------------------------------------------- */

extern "C" attribute_visible void *autosmc_stan_init(SEXP data) {
  return autosmc_stan::begin(data);
}

extern "C" attribute_visible int
autosmc_stan_log_density(void *context, int d, int n, const double *x,
                         double *logp, double *grad) {
  autosmc_stan::program *p = static_cast<autosmc_stan::program *>(context);
  return autosmc_stan::evaluate(p, d, n, x, logp, grad) ? 0 : 1;
}

/* Shows what log_density has printed; an error if it has failed. */
extern "C" attribute_visible void autosmc_stan_settle(void *context) {
  autosmc_stan::program *p = static_cast<autosmc_stan::program *>(context);
  autosmc_stan::show_printed(p);
  const autosmc_stan::message *thrown = autosmc_stan::take_thrown(p);
  if (thrown)
    autosmc_stan::fail(*thrown);
}

extern "C" attribute_visible void autosmc_stan_release(void *context) {
  autosmc_stan::destroy(static_cast<autosmc_stan::program *>(context));
}

/* The version of this interface, which R compares with its own. */
extern "C" attribute_visible SEXP autosmc_stan_interface(void) {
  return Rf_ScalarInteger(AUTOSMC_STAN_INTERFACE);
}

/* Whether log_density may be called from several threads. */
extern "C" attribute_visible SEXP autosmc_stan_is_thread_safe(void) {
#ifdef STAN_THREADS
  return Rf_ScalarLogical(1);
#else
  return Rf_ScalarLogical(0);
#endif
}

/* list(unconstrained, outputs: names; n_parameters, n_transformed: how many of
 * the outputs, in this order) */
extern "C" attribute_visible SEXP autosmc_stan_describe(SEXP data) {
  autosmc_stan::task t = {data,       R_NilValue, R_NilValue,
                          R_NilValue, nullptr,    nullptr};
  return R_ExecWithCleanup(autosmc_stan::describe_task, &t, autosmc_stan::end,
                           &t);
}

/* x: an n x d matrix on the unconstrained scale; blocks: whether transformed
 * parameters and generated quantities are wanted; columns: which of the numbers
 * that the parameters and these blocks have, from 1. list(values: a matrix with
 * n rows; failed: how many of them have NaN; message: of the first of these) */
extern "C" attribute_visible SEXP autosmc_stan_outputs(SEXP data, SEXP x,
                                                       SEXP blocks,
                                                       SEXP columns) {
  autosmc_stan::task t = {data, x, blocks, columns, nullptr, nullptr};
  return R_ExecWithCleanup(autosmc_stan::outputs_task, &t, autosmc_stan::end,
                           &t);
}

/* x: a matrix with a column for each of the numbers that the parameters are, as
 * outputs has them; the result as there, with a column a dimension. */
extern "C" attribute_visible SEXP autosmc_stan_unconstrain(SEXP data, SEXP x) {
  autosmc_stan::task t = {data, x, R_NilValue, R_NilValue, nullptr, nullptr};
  return R_ExecWithCleanup(autosmc_stan::unconstrain_task, &t,
                           autosmc_stan::end, &t);
}

/* x: a matrix with a row a point on the unconstrained scale; what the program
 * throws at the first of those at which it throws, or NULL. */
extern "C" attribute_visible SEXP autosmc_stan_why(SEXP data, SEXP x) {
  autosmc_stan::task t = {data, x, R_NilValue, R_NilValue, nullptr, nullptr};
  return R_ExecWithCleanup(autosmc_stan::why_task, &t, autosmc_stan::end, &t);
}

#endif
