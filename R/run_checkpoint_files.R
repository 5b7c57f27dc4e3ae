# The files of a checkpoint.

put_aside <- function(file) {
  aside <- paste0(file, ".damaged")
  suppressWarnings(file.rename(file, aside))
  warn("checkpoint", "{.file {file}} is damaged, and is run again; it is now {.file {aside}}.")
}

# The file is written under another name and then renamed: a process that is killed leaves
# no partial file of this name, and of two processes the first one's file stays. The warnings
# of failures all have the same words, so that once_each() shows the first one only.
write_file <- function(bytes, file) {
  part <- tempfile(paste0(basename(file), ".part-"), dirname(file))
  on.exit(unlink(part))
  tryCatch(
    {
      write_whole(bytes, part)
      if (!suppressWarnings(file.link(part, file)) && !file.exists(file)) {
        file.rename(part, file) # there are file systems without links
      }
    },
    error = function(e) {
      warn("checkpoint", c(
        "Nothing can be written to {.file {dirname(file)}}: this part of the run is not kept.",
        "i" = "Is the disk full, or the folder read-only? The run goes on."
      ))
    }
  )
}

# R does not notice a full disk when it closes a file: so the size is compared.
write_whole <- function(bytes, file) {
  suppressWarnings({
    connection <- file(file, "wb")
    tryCatch(writeBin(bytes, connection), finally = close(connection))
  })
  if (!identical(as.double(file.size(file)), as.double(length(bytes)))) {
    stop("the file is not complete")
  }
}
