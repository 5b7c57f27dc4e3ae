# Writing the files of a checkpoint, so that no partial file can be left.

# Renames a damaged file.
put_aside <- function(file) {
  aside <- paste0(file, ".damaged")
  suppressWarnings(file.rename(file, aside))
  warn("checkpoint", "{.file {file}} is damaged and was renamed to {.file {aside}}; its part of the fit is run again.")
}

# Writes a file under a temporary name and then renames it: a process that is killed leaves no partial file, and of two
# processes the first one's file stays. All warnings of failures have the same words, so that once_each() shows one
# only.
write_file <- function(bytes, file) {
  part <- tempfile(paste0(basename(file), ".part-"), dirname(file))
  on.exit(unlink(part))
  tryCatch(
    {
      write_whole(bytes, part)
      if (!suppressWarnings(file.link(part, file)) && !file.exists(file)) {
        file.rename(part, file) # on file systems without links
      }
    },
    error = function(e) {
      warn("checkpoint", c(
        "Nothing can be written to {.file {dirname(file)}}: this part of the fit is not stored.",
        "i" = "The disk may be full, or the folder read-only. The fit continues."
      ))
    }
  )
}

# Writes bytes and compares the size of the file, since R does not notice a full disk when it closes a file.
write_whole <- function(bytes, file) {
  suppressWarnings({
    connection <- file(file, "wb")
    tryCatch(writeBin(bytes, connection), finally = close(connection))
  })
  if (!identical(as.double(file.size(file)), as.double(length(bytes)))) {
    stop("the file is not complete")
  }
}
