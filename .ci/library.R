# Prints the library to install into: the first one or, where that is not
# writable, the user's own, made if need be.
lib <- .libPaths()[1]
if (file.access(lib, 2) != 0) {
  lib <- path.expand(strsplit(Sys.getenv("R_LIBS_USER"), ":")[[1]][1])
  dir.create(lib, showWarnings = FALSE, recursive = TRUE)
}
cat(lib)
