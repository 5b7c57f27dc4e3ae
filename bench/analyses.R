analyses <- list()
