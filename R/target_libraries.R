# Shared libraries. R finds a routine by the base name of its library, which two libraries may share. Here a library is
# known by what it holds and by its full path, or the package that it is of, which may be installed elsewhere.

# What is kept of a loaded library: list(dll, package, sum), or list(dll, path, sum). `dll` is R's name of it, without
# its path and ending; those of R and of this package, which knows fits of other versions, have no sum. info: a DLLInfo.
library_record <- function(info) {
  name <- info[["name"]]
  path <- info[["path"]]
  if (name == "base" || identical(path, path_in_package(name))) {
    return(list(dll = name, package = name, sum = if (!name %in% c("base", "autosmc")) sum_of(path)))
  }
  checked_record(file_record(path))
}

# The same of a file.
file_record <- function(path) {
  path <- normalizePath(path, mustWork = FALSE)
  list(dll = first_name(path), path = path, sum = sum_of(path))
}

# As R names a library of this path.
first_name <- function(path) sub("[.][^.]*$", "", basename(path))

# NULL where the package is not loaded, or has no library of its name.
path_in_package <- function(package) {
  if (package != "base" && isNamespaceLoaded(package)) {
    getNamespaceInfo(package, "DLLs")[[package]][["path"]]
  }
}

own_library <- function() getNamespaceInfo("autosmc", "DLLs")$autosmc

# The library as R has it loaded (a DLLInfo), or NULL. Asked for anew each time: R frees what it tells of a library when
# that is unloaded.
loaded_library <- function(name, path) {
  same <- getLoadedDLLs()
  for (info in same[names(same) == name]) {
    if (identical(normalizePath(info[["path"]], mustWork = FALSE), normalizePath(path, mustWork = FALSE))) {
      return(info)
    }
  }
}

# The library of a record, loaded if need be (a DLLInfo). It may have a `namespace` besides: of a package with what it
# was linked to.
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

# R's number of libraries is limited. Those that were loaded here are loaded again when they are needed, so one of them
# makes room.
load_library <- function(library) {
  if (!is.null(library$namespace)) loadNamespace(library$namespace)
  tryCatch(dyn.load(library$path), error = function(e) {
    make_room()
    tryCatch(dyn.load(library$path), error = function(e) {
      abort("The library {.file {library$path}} cannot be loaded.", parent = e)
    })
  })
}

# Unloads the library that was opened longest ago. A run that goes on may use the last two, as target and reference.
make_room <- function() {
  for (path in utils::head(utils::head(opened$paths, -2), 1)) {
    opened$paths <- setdiff(opened$paths, path)
    if (!is.null(loaded_library(first_name(path), path))) dyn.unload(path)
  }
}

# The paths of the libraries that were loaded here, in the order in which they were opened last.
opened <- new.env()

# A record, after a look whether the file is still what it was. One without `sum` is not asked: its name says what it
# holds.
checked_record <- function(library) {
  path <- library$path
  if (is.null(library$sum)) {
    return(library)
  }
  if (!file.exists(path)) abort("The library {.file {path}} is no longer there.")
  change <- if (!identical(sum_of(path), library$sum)) {
    c(
      "The library {.file {path}} has changed since the target was made of it.",
      "i" = "Make the target anew, of the library as it is now."
    )
  } else if (is_replaced(path)) {
    c(
      "The library {.file {path}} was built anew, but what is loaded is the one before.",
      "i" = "Load it with {.fn dyn.unload} and {.fn dyn.load}, or start R anew."
    )
  }
  if (!is.null(change)) abort(change, "mismatch")
  library
}

# Whether what is loaded of a path is a file that is no longer there. Linux alone tells.
is_replaced <- function(path) {
  maps <- "/proc/self/maps"
  if (!file.exists(maps)) {
    return(FALSE)
  }
  lines <- readLines(maps, warn = FALSE)
  any(endsWith(lines, paste0(" ", path, " (deleted)"))) && !any(endsWith(lines, paste0(" ", path)))
}

# The plain address of a routine of a library (a DLLInfo). withRegistrationInfo = FALSE matters: with it
# the pointer would be to R's record of the routine, not to the routine.
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

# The checksum of a file (string), NA where there is none. A file that is as it was by its size and time is not read
# again.
sum_of <- function(path) {
  state <- file.info(path)[c("size", "mtime")]
  known <- file_sums[[path]]
  if (!identical(known$state, state)) {
    known <- list(state = state, sum = unname(tools::md5sum(path)))
    assign(path, known, file_sums)
  }
  known$sum
}

file_sums <- new.env()
