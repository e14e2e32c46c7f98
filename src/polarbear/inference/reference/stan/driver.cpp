// Runs one of Stan's algorithms on the model it is linked with:
//
//   program <algorithm> <data.json> <folder> <seed> <chains> <tune> <draws> <threads>
//
// The algorithm is nuts, pathfinder, laplace or log_prob. Draws go to CSV files in the folder:
// scalars and log-utilities only. log_prob reads unconstrained values from standard input, as many
// points as there are, and prints the log-density of each. Warnings go to standard error.

#include <stan/callbacks/stream_logger.hpp>
#include <stan/io/empty_var_context.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/math/prim/core/init_threadpool_tbb.hpp>
#include <stan/model/model_base.hpp>
#include <stan/services/optimize/laplace_sample.hpp>
#include <stan/services/pathfinder/multi.hpp>
#include <stan/services/sample/hmc_nuts_diag_e_adapt.hpp>

#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

// The model that stanc wrote.
stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed,
                                   std::ostream* messages);

namespace {

using Model = stan::model::model_base;
using Quiet = stan::callbacks::writer;
using QuietRecords = stan::callbacks::structured_writer;
using Empty = stan::io::empty_var_context;

const double radius = 2;  // of random starts, as everywhere in Stan

struct Settings {
  unsigned int seed;
  int chains, tune, draws;
};

// Writes the columns of interest: scalars, and the log-utilities if asked for. White coefficients
// and the like can be had from them, and would make the files twice as long.
class Columns final : public stan::callbacks::writer {
 public:
  Columns(const std::string& path, bool utilities)
      : out_(std::make_unique<std::ofstream>(path)), utilities_(utilities) {
    out_->exceptions(std::ios::badbit | std::ios::failbit);
    out_->precision(10);  // draws are kept in single precision
  }

  void operator()(const std::vector<std::string>& names) override {
    kept_.clear();
    for (size_t i = 0; i < names.size(); ++i) {
      bool scalar = names[i].find('.') == std::string::npos;
      if (scalar || (utilities_ && names[i].rfind("mu.", 0) == 0)) {
        *out_ << (kept_.empty() ? "" : ",") << names[i];
        kept_.push_back(i);
      }
    }
    *out_ << '\n';
  }

  void operator()(const std::vector<double>& state) override { row(state.data()); }

  void operator()(const Eigen::Ref<Eigen::Matrix<double, -1, -1>>& draws) override {
    for (Eigen::Index i = 0; i < draws.cols(); ++i) row(draws.col(i).data());
  }

  void operator()() override {}
  void operator()(const std::string&) override {}

 private:
  void row(const double* values) {
    for (size_t k = 0; k < kept_.size(); ++k) *out_ << (k ? "," : "") << values[kept_[k]];
    *out_ << '\n';
  }

  std::unique_ptr<std::ofstream> out_;
  bool utilities_;
  std::vector<size_t> kept_;
};

// One file per chain or path.
std::vector<Columns> files(const std::string& stem, int number, bool utilities) {
  std::vector<Columns> found;
  for (int i = 0; i < number; ++i) {
    found.emplace_back(stem + std::to_string(i + 1) + ".csv", utilities);
  }
  return found;
}

std::vector<std::shared_ptr<Empty>> starts(int number) {
  return std::vector<std::shared_ptr<Empty>>(number, std::make_shared<Empty>());
}

int nuts(Model& model, const std::string& folder, const Settings& set,
         stan::callbacks::interrupt& interrupt, stan::callbacks::logger& logger) {
  auto out = files(folder + "/chain", set.chains, true);
  std::vector<Quiet> inits(set.chains), diagnostics(set.chains);
  std::vector<QuietRecords> metrics(set.chains);
  const int thin = 1, refresh = 0, depth = 10;
  const double step = 1, jitter = 0, target = 0.9, gamma = 0.05, kappa = 0.75, t0 = 10;
  const int first = 75, last = 50, window = 25;  // Stan's own phases of the adaptation
  return stan::services::sample::hmc_nuts_diag_e_adapt(
      model, set.chains, starts(set.chains), set.seed, 1, radius, set.tune, set.draws, thin, false,
      refresh, step, jitter, depth, target, gamma, kappa, t0, first, last, window, interrupt,
      logger, inits, out, diagnostics, metrics);
}

int pathfinder(Model& model, const std::string& folder, const Settings& set,
               stan::callbacks::interrupt& interrupt, stan::callbacks::logger& logger) {
  Columns out(folder + "/chain1.csv", true);
  auto paths = files(folder + "/path", set.chains, false);
  std::vector<Quiet> inits(set.chains);
  std::vector<QuietRecords> records(set.chains);
  QuietRecords record;
  // The numbers are the defaults of CmdStan.
  const int history = 5, iterations = 1000, for_elbo = 25, refresh = 0;
  const double step = 0.001, objective = 1e-12, relative_objective = 1e4;
  const double gradient = 1e-8, relative_gradient = 1e7, parameter = 1e-8;
  return stan::services::pathfinder::pathfinder_lbfgs_multi(
      model, starts(set.chains), set.seed, 1, radius, history, step, objective, relative_objective,
      gradient, relative_gradient, parameter, iterations, for_elbo, set.draws, set.draws,
      set.chains, false, refresh, interrupt, logger, inits, paths, records, out, record);
}

int laplace(Model& model, const std::string& folder, const Settings& set,
            stan::callbacks::interrupt& interrupt, stan::callbacks::logger& logger) {
  using Update = stan::optimization::LBFGSUpdate<>;
  using Search = stan::optimization::BFGSLineSearch<Model, Update, double, Eigen::Dynamic, true>;
  Quiet init;
  std::vector<int> none;
  auto rng = stan::services::util::create_rng(set.seed, 1);
  auto at = stan::services::util::initialize(model, Empty(), rng, radius, false, logger, init);
  Search search(model, at, none, nullptr);
  search._conv_opts.tolRelF = 1e2;  // a mode for a Hessian must be closer than one for its own sake
  int ended = 0;
  while (ended == 0) ended = search.step();
  // A line search that can go no higher has also arrived; the caller judges by the draws.
  if (ended < 0) logger.warn("mode: " + search.get_code_string(ended));
  Columns out(folder + "/chain1.csv", true);
  QuietRecords record;
  return stan::services::laplace_sample<true>(model, search.curr_x(), set.draws, true, set.seed, 0,
                                              interrupt, logger, out, record);
}

int log_prob(Model& model) {
  Eigen::VectorXd point(model.num_params_r());
  Eigen::Index filled = 0;
  std::cout.precision(17);
  for (double value; std::cin >> value;) {
    point[filled++] = value;
    if (filled < point.size()) continue;
    std::cout << model.log_prob_jacobian(point, &std::cerr) << '\n';
    filled = 0;
  }
  return filled == 0 ? 0 : stan::services::error_codes::DATAERR;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 9) throw std::invalid_argument("expected 8 arguments");
  const std::string algorithm = argv[1], folder = argv[3];
  Settings set{static_cast<unsigned int>(std::stoul(argv[4])), std::stoi(argv[5]),
               std::stoi(argv[6]), std::stoi(argv[7])};
  stan::math::init_threadpool_tbb(std::stoi(argv[8]));
  std::ifstream file(argv[2]);
  if (!file) throw std::invalid_argument("cannot read " + std::string(argv[2]));
  stan::json::json_data data(file);
  std::unique_ptr<Model> model(&new_model(data, set.seed, &std::cerr));
  std::ostream nowhere(nullptr);
  stan::callbacks::stream_logger logger(nowhere, nowhere, std::cerr, std::cerr, std::cerr);
  stan::callbacks::interrupt interrupt;
  if (algorithm == "nuts") return nuts(*model, folder, set, interrupt, logger);
  if (algorithm == "pathfinder") return pathfinder(*model, folder, set, interrupt, logger);
  if (algorithm == "laplace") return laplace(*model, folder, set, interrupt, logger);
  if (algorithm == "log_prob") return log_prob(*model);
  throw std::invalid_argument("no such algorithm: " + algorithm);
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return stan::services::error_codes::SOFTWARE;
}
