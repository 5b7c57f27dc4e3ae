# Fast tables: tibbles from lists of columns, rows as lists, and lists without NULLs.

# A tibble of columns of the same length, without the checks of tibble(), which would take a third of the time of a
# short run.
new_table <- function(...) as_table(list(...))

as_table <- function(columns) {
  structure(
    columns,
    row.names = .set_row_names(length(columns[[1]])), class = c("tbl_df", "tbl", "data.frame")
  )
}

# A row of a table, or some of them, as a list of columns.
row_of <- function(table, i) lapply(unclass(table), `[`, i)

without_null <- function(list) list[!vapply(list, is.null, TRUE)]

# Tables or rows with the same columns, bound by rows; NULLs are left out.
bind_rows <- function(tables) {
  tables <- lapply(without_null(tables), unclass)
  if (length(tables) == 0) {
    return(tibble::tibble())
  }
  if (length(tables) == 1) {
    return(as_table(tables[[1]]))
  }
  columns <- lapply(names(tables[[1]]), function(name) {
    unlist(lapply(tables, `[[`, name), use.names = FALSE)
  })
  as_table(stats::setNames(columns, names(tables[[1]])))
}

name_columns <- function(x, names) {
  colnames(x) <- names
  x
}
