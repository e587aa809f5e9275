// The search of tuning fields for the calls of a queue.
#include <api/queue_state.hpp>
#include <core/printable.hpp>
#include <trifactor/inspect.hpp>
#include <tuning/search.hpp>

#include <algorithm>

namespace trifactor::inspect {

namespace {

const tuning::Operation& operation_named(const std::string& name) {
  for (const tuning::Operation& operation : tuning::operations())
    if (operation.name == name) return operation;
  throw InvalidArgument("search_tuning: operation \"" + core::printable(name) + "\" is unknown");
}

void append(std::string& text, const std::string& word) { text += (text.empty() ? "" : " ") + word; }

}  // namespace

TuningDecision search_tuning(const Queue& q, const std::string& name, const std::string& scalar, index_t n,
                             index_t count, const std::function<double(const std::string&)>& seconds,
                             const std::function<bool()>& stop) try {
  const tuning::Operation& operation = operation_named(name);
  const auto machine = q.state()->machine();
  const auto in_force = tuning::values_in_force(tuning::loaded().table, operation, machine, scalar, n, count);
  const auto defaults = tuning::default_values(operation);
  const auto coordinates = tuning::coordinates_of(operation, q.is_cuda(), n, count);
  const auto place_of = [&](std::size_t i) { return std::size_t(coordinates[i].field - operation.fields.data()); };
  std::vector<index_t> start;
  for (std::size_t i = 0; i < coordinates.size(); ++i) start.push_back(in_force[place_of(i)]);

  const auto found = tuning::search(
      coordinates, start,
      [&](const std::vector<index_t>& values) {
        std::string text;
        for (std::size_t i = 0; i < values.size(); ++i) append(text, coordinates[i].field->text(values[i]));
        return seconds(text);
      },
      stop);

  TuningDecision decision;
  const auto architecture =
      std::find_if(machine.chain.begin(), machine.chain.end(), [](std::string_view a) { return !a.empty(); });
  decision.row = std::string(*architecture) + ' ' + name + ' ' + scalar;
  std::vector<index_t> all = in_force;
  for (std::size_t i = 0; i < coordinates.size(); ++i) all[place_of(i)] = found.values[i];
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string text = operation.fields[i].text(all[i]);
    if (all[i] != in_force[i]) append(decision.changed, text);
    if (all[i] != in_force[i] || all[i] != defaults[i]) append(decision.settings, text);
  }
  decision.before = found.before, decision.seconds = found.seconds, decision.spread = found.spread;
  decision.candidates = found.candidates, decision.runs = found.runs;
  decision.gains = !decision.changed.empty() && found.gains();
  return decision;
}
TRIFACTOR_CATCH_BAD_ALLOC

std::string home_tuning_file() try { return tuning::home_file(); }
TRIFACTOR_CATCH_BAD_ALLOC

std::vector<TuningRow> read_tuning_file(const std::string& name) try {
  tuning::Table table;
  const tuning::TextFile file{name, tuning::read_file(name.c_str(), "the tuning file")};
  table.add({&file, 1});
  return table.list();
}
TRIFACTOR_CATCH_BAD_ALLOC

}  // namespace trifactor::inspect
