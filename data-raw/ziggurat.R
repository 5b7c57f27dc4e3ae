# Writes src/ziggurat.h: the layers of the normal ziggurat.
#
# The area under exp(-x^2 / 2), x >= 0, is cut into 256 pieces of equal area v:
# 255 horizontal strips, and at the bottom a strip with the tail beyond r. Layer
# i spans 0 <= x <= edge[i], and edge[256] = 0. Layer 0, the one with the tail, is
# drawn as if it were a rectangle of area v, so edge[0] = v / f(r) > r = edge[1].

layers <- 256
f <- function(x) exp(-x^2 / 2)
tail_area <- function(r) sqrt(2 * pi) * pnorm(r, lower.tail = FALSE)
area <- function(r) r * f(r) + tail_area(r)

# The heights, from the bottom up, that strips of this area reach.
heights <- function(r) {
  y <- f(r)
  x <- r
  for (i in seq_len(layers - 1)) {
    y[i + 1] <- y[i] + area(r) / x
    x <- abs(sqrt(-2 * log(min(y[i + 1], 1)))) # sqrt(-0) is -0
  }
  y
}

# The last strip must end at the top of the density, where f = 1.
r <- uniroot(function(r) {
  y <- heights(r)
  if (any(y[-layers] >= 1)) 1 else y[layers] - 1
}, c(3.6, 3.7), tol = 1e-15)$root

y <- heights(r)
edge <- c(area(r) / f(r), sqrt(-2 * log(y[-layers])), 0)
height <- f(edge)
stopifnot(length(edge) == layers + 1, abs(y[layers] - 1) < 1e-12)

table <- function(name, x) {
  rows <- matrix(c(sprintf("%.17g", x), rep("", -length(x) %% 3)), nrow = 3)
  rows <- apply(rows, 2, function(row) paste(row[nzchar(row)], collapse = ", "))
  c(
    sprintf("static const double %s[%d] = {", name, length(x)),
    paste0("    ", rows, c(rep(",", length(rows) - 1), "};"))
  )
}

writeLines(c(
  "/* ziggurat.h: the layers of the normal ziggurat of Marsaglia and Tsang",
  " * (2000). Made by data-raw/ziggurat.R; do not edit. */",
  "#ifndef SMC_ZIGGURAT_H",
  "#define SMC_ZIGGURAT_H",
  "",
  "/* Right edges of the layers, from the bottom one up, and exp(-x^2 / 2) there. */",
  table("smc_ziggurat_edge", edge),
  table("smc_ziggurat_height", height),
  "",
  "#endif"
), "src/ziggurat.h")
