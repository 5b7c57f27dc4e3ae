  real log_exponential(real x) {
    return -x;
  }
