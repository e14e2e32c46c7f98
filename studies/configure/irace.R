# Run irace. Arguments: port of the server that makes runs, number of runs, seed, and a file with parameters.
library(irace)
arguments <- commandArgs(trailingOnly = TRUE)
server <- socketConnection("127.0.0.1", as.integer(arguments[1]), open = "r+", blocking = TRUE, timeout = 3600)
parameters <- readParameters(arguments[4], digits = 4)
target <- function(experiment, scenario) {
  values <- unlist(experiment$configuration[parameters$names])
  text <- paste(parameters$names, values, sep = "=", collapse = ",")
  writeLines(paste(experiment$id.instance, experiment$seed, text), server)
  list(cost = as.numeric(readLines(server, n = 1)), time = 0)
}
scenario <- list(
  targetRunner = target, instances = as.character(1:200), maxExperiments = as.integer(arguments[2]),
  seed = as.integer(arguments[3]), logFile = "", digits = 4
)
best <- irace(scenario = scenario, parameters = parameters)
values <- unlist(best[1, parameters$names])
writeLines(paste("best", 0, paste(parameters$names, values, sep = "=", collapse = ",")), server)
close(server)
