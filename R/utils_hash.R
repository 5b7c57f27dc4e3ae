# Hashes of values.

# A hash of a vector of bytes, or of the value of an object, which is the same on any machine.
hash_of <- function(x) {
  if (!is.raw(x)) {
    x <- serialize(x, NULL, version = 2)[-(1:14)] # which say by which version of R
  }
  .Call(r_hash, x)
}
