/* autosmc_statement.hpp: lets a Stan program be interrupted.
 *
 * target_stan() includes this file before the C++ that stanc makes of a
 * program. There the number of the statement that is about to run is kept in an
 * int, for messages; target_stan() makes it a `statement`, which looks for
 * Ctrl-C.
 */
#ifndef AUTOSMC_STATEMENT_HPP
#define AUTOSMC_STATEMENT_HPP

#ifndef _WIN32
extern "C" int R_interrupts_pending;
#endif

namespace autosmc_stan {

/* No std::exception, so that it passes all handlers of Stan's. */
struct interrupted {};

class statement {
  int number_;

public:
  statement(int number) : number_(number) {}
  statement &operator=(int number) {
    number_ = number;
#ifndef _WIN32
    if (R_interrupts_pending)
      throw interrupted();
#endif
    return *this;
  }
  operator int() const { return number_; }
};

} // namespace autosmc_stan

#endif
