# A hash of a raw vector, or of the value of any object; the same on all machines.
hash_of <- function(x) {
  if (!is.raw(x)) {
    x <- serialize(x, NULL, version = 2)[-(1:14)] # without the header, which has the version of R
  }
  .Call(r_hash, x)
}
