# Shared libraries of compiled targets. R identifies a loaded library by its base name, which several may share. Here a
# library is identified by its checksum and its full path or, since packages may move, its package.

# The record of a loaded library (a DLLInfo): list(dll, package, sum) or list(dll, path, sum). `dll` is R's name of it,
# without path and extension. There is no `sum` for R itself, nor for this package, which reads fits of other versions.
library_record <- function(info) {
  name <- info[["name"]]
  path <- info[["path"]]
  if (name == "base" || identical(path, path_in_package(name))) {
    return(list(dll = name, package = name, sum = if (!name %in% c("base", "autosmc")) checksum_of(path)))
  }
  checked_record(file_record(path))
}

file_record <- function(path) {
  path <- normalizePath(path, mustWork = FALSE)
  list(dll = library_name(path), path = path, sum = checksum_of(path))
}

library_name <- function(path) sub("[.][^.]*$", "", basename(path))

# The path of a package's library; NULL if the package is not loaded or has no library of its name.
path_in_package <- function(package) {
  if (package != "base" && isNamespaceLoaded(package)) {
    getNamespaceInfo(package, "DLLs")[[package]][["path"]]
  }
}

own_library <- function() getNamespaceInfo("autosmc", "DLLs")$autosmc

# The loaded library with this name and path (a DLLInfo), or NULL. It is looked up each time, since R frees a DLLInfo
# when its library is unloaded.
loaded_library <- function(name, path) {
  same <- getLoadedDLLs()
  for (info in same[names(same) == name]) {
    if (identical(normalizePath(info[["path"]], mustWork = FALSE), normalizePath(path, mustWork = FALSE))) {
      return(info)
    }
  }
}

# The library of a record (a DLLInfo), loaded if necessary. The record may also have `namespace`, the name of a package
# with libraries that this one is linked to.
open_library <- function(library) {
  if (is.null(library)) abort_version("target", "its library is not known")
  if (!is.null(library$package)) {
    loadNamespace(library$package)
    path <- if (library$package == "base") "base" else path_in_package(library$package)
    if (!is.null(path)) checked_record(list(path = path, sum = library$sum))
    return(loaded_library(library$dll, path))
  }
  checked_record(library)
  info <- loaded_library(library$dll, library$path)
  is_opened_here <- is.null(info) || library$path %in% opened$paths
  if (is.null(info)) info <- load_library(library)
  if (is_opened_here) opened$paths <- c(setdiff(opened$paths, library$path), library$path)
  info
}

# R limits the number of loaded libraries. If loading fails, a library that was loaded here is unloaded first; it is
# loaded again when needed.
load_library <- function(library) {
  if (!is.null(library$namespace)) loadNamespace(library$namespace)
  tryCatch(dyn.load(library$path), error = function(e) {
    unload_oldest_library()
    tryCatch(dyn.load(library$path), error = function(e) {
      abort("The library {.file {library$path}} cannot be loaded.", parent = e)
    })
  })
}

# Unloads the library that was opened longest ago, but not the last two, which the current run may use for its target
# and its reference.
unload_oldest_library <- function() {
  for (path in utils::head(utils::head(opened$paths, -2), 1)) {
    opened$paths <- setdiff(opened$paths, path)
    if (!is.null(loaded_library(library_name(path), path))) dyn.unload(path)
  }
}

# Its element `paths`: the libraries that were loaded here, the most recently opened last.
opened <- new.env()

# Returns the record, after a check that the file has not changed. A record without `sum` is not checked.
checked_record <- function(library) {
  path <- library$path
  if (is.null(library$sum)) {
    return(library)
  }
  if (!file.exists(path)) abort("The library {.file {path}} no longer exists.")
  change <- if (!identical(checksum_of(path), library$sum)) {
    c(
      "The library {.file {path}} has changed since the target was made.",
      "i" = "Make the target again, from the present library."
    )
  } else if (is_replaced(path)) {
    c(
      "The library {.file {path}} was built again, but the previous version is still loaded.",
      "i" = "Load it again with {.fn dyn.unload} and {.fn dyn.load}, or restart R."
    )
  }
  if (!is.null(change)) abort(change, "mismatch")
  library
}

# Whether the loaded library comes from a file that has since been replaced. Only Linux provides this information;
# elsewhere FALSE.
is_replaced <- function(path) {
  maps <- "/proc/self/maps"
  if (!file.exists(maps)) {
    return(FALSE)
  }
  lines <- readLines(maps, warn = FALSE)
  any(endsWith(lines, paste0(" ", path, " (deleted)"))) && !any(endsWith(lines, paste0(" ", path)))
}

# The address of a routine of a library (a DLLInfo). withRegistrationInfo = FALSE is needed: otherwise the pointer
# would be to R's record of the routine, not to the routine.
find_routine <- function(symbol, info) {
  tryCatch(
    getNativeSymbolInfo(symbol, info, withRegistrationInfo = FALSE)$address,
    error = function(e) {
      abort(c(
        "There is no routine {.val {symbol}} in the library {.val {info[['name']]}}.",
        "i" = 'Is it spelt so in the source, not {.code static}, and in C++ declared as {.code extern} "C"? Does a
          package that calls {.code R_useDynamicSymbols(dll, FALSE)} register it?'
      ))
    }
  )
}

# The checksum of a file (string), NA if there is no file. A file whose size and modification time have not changed is
# not read again.
checksum_of <- function(path) {
  state <- file.info(path)[c("size", "mtime")]
  known <- file_sums[[path]]
  if (!identical(known$state, state)) {
    known <- list(state = state, sum = unname(tools::md5sum(path)))
    assign(path, known, file_sums)
  }
  known$sum
}

file_sums <- new.env()
