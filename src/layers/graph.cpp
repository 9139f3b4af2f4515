// SPDX-License-Identifier: Apache-2.0
#include "layers/graph.h"

#include <algorithm>
#include <map>
#include <optional>

#include "layers/fuse.h"

namespace annulus {
namespace {

constexpr std::size_t shown_shapes = 6;
// Sums of a few thousand such numbers still fit in 64 bits.
constexpr std::int64_t max_elements = std::int64_t{1} << 40;
constexpr std::int64_t max_macs = std::int64_t{1} << 50;

void check_sizes(const Layer& layer, const Shape& output) {
  require(output.elements() <= max_elements, ErrorKind::usage, "a result of shape {} is too large",
          to_string(output));
  for (const ParameterSpec& parameter : layer.parameters()) {
    require(parameter.shape.elements() <= max_elements, ErrorKind::usage,
            "a {} of shape {} is too large", parameter.name, to_string(parameter.shape));
  }
  require(layer.macs() <= max_macs, ErrorKind::usage, "more than 2^50 operations a sample");
}

std::string inputs_text(const Layer& layer) {
  const int low = layer.min_inputs();
  const int high = layer.max_inputs();
  return low == high ? fmt::format("{} input{}", low, low == 1 ? "" : "s")
                     : fmt::format("{} to {} inputs", low, high);
}

bool same_parameters(const Layer& a, const Layer& b) {
  const auto left = a.parameters();
  const auto right = b.parameters();
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const ParameterSpec& x, const ParameterSpec& y) {
                      return x.name == y.name && x.shape == y.shape;
                    });
}

std::string shapes_text(const Layer& layer) {
  std::string text;
  for (const ParameterSpec& parameter : layer.parameters()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", parameter.name,
                        to_string(parameter.shape));
  }
  return text.empty() ? "no parameters" : text;
}

// Values and nodes from the layers as written: names, shapes, checks.
class Builder {
 public:
  Builder(ModelSpec& spec, Problems& problems) : spec_(spec), problems_(problems) {}

  bool build() {
    const std::size_t before = problems_.count();
    if (spec_.inputs.empty()) return refuse("the model has no input: set 'model.input'");
    add_inputs();
    for (LayerSpec& layer : spec_.layers) add_layer(layer);
    if (problems_.count() != before || spec_.layers.empty())
      return refuse("the model has no layers");
    output = nodes.back().output;
    check_readers();
    check_loss();
    return problems_.count() == before;
  }

  std::vector<Graph::ValueInfo> values;
  std::vector<Graph::Node> nodes;
  std::map<std::string, std::string> owners;  // of the parameters that a layer shares
  int output = -1;

 private:
  // What the reader of the config has refused already is not refused again.
  bool refuse(const char* message) {
    if (problems_.empty()) problems_.add(spec_.where, message);
    return false;
  }

  void problem(const LayerSpec& layer, const std::string& message) {
    problems_.add(layer.where, fmt::format("layer {}: {}", layer.name, message));
  }

  bool claim(const std::string& name) { return value_of_.emplace(name, -1).second; }

  int add_value(const std::string& name, const Shape& shape) {
    values.push_back({name, shape, -1, {}});
    return value_of_[name] = static_cast<int>(values.size()) - 1;
  }

  void add_inputs() {
    for (const ModelInput& input : spec_.inputs) {
      if (!claim(input.name)) {
        problems_.add(spec_.where, fmt::format("two inputs are called '{}'", input.name));
      }
      add_value(input.name, input.shape);
    }
  }

  void add_layer(LayerSpec& spec) {
    const std::string before = previous_;
    previous_ = spec.name;
    const auto inputs = find_inputs(spec, before);
    if (!claim(spec.name)) {
      return problem(spec, "an input or another layer has the same name; names are unique");
    }
    if (!inputs) return;
    const Layer& layer = *spec.layer;
    const auto count = static_cast<int>(inputs->size());
    if (count < layer.min_inputs() || count > layer.max_inputs()) {
      return problem(spec, fmt::format("takes {}, not {}", inputs_text(layer), count));
    }
    const std::optional<Shape> shape = infer(spec, *inputs);
    if (!shape) return;
    Graph::Node node;
    node.name = spec.name;
    node.kind = spec.kind;
    node.layer = spec.layer.get();
    node.inputs = *inputs;
    node.output = add_value(spec.name, *shape);
    nodes.push_back(std::move(node));
    if (!spec.share.empty()) share(spec);
  }

  // The values that a layer reads; nothing where one is unknown, or has no shape because of an
  // earlier problem.
  std::optional<std::vector<int>> find_inputs(const LayerSpec& spec, const std::string& before) {
    std::vector<std::string> names = spec.from;
    if (names.empty()) names.emplace_back();
    std::vector<int> found;
    bool good = true;
    for (const std::string& name : names) {
      const auto value = find_input(spec, name.empty() ? before : name);
      good = good && value && *value >= 0;
      if (good) found.push_back(*value);
    }
    return good ? std::optional(found) : std::nullopt;
  }

  std::optional<int> find_input(const LayerSpec& spec, const std::string& name) {
    if (name.empty()) {
      if (spec_.inputs.size() == 1) return 0;
      if (!spec_.inputs.empty()) {
        problem(spec, fmt::format("the model has {} inputs: say with 'from' which one it reads",
                                  spec_.inputs.size()));
      }
      return std::nullopt;
    }
    const auto value = value_of_.find(name);
    if (value != value_of_.end()) return value->second;
    problem(spec, unknown_name(name));
    return std::nullopt;
  }

  std::string unknown_name(const std::string& name) const {
    const auto& layers = spec_.layers;
    if (std::any_of(layers.begin(), layers.end(), [&](auto& l) { return l.name == name; })) {
      return fmt::format("'{}' is not before it; a layer reads earlier layers alone", name);
    }
    std::vector<std::string> known;
    known.reserve(value_of_.size());
    for (const auto& [key, value] : value_of_) known.push_back(key);
    const std::string guess = nearest(name, known);
    return fmt::format("no layer or input is called '{}'{}", name,
                       guess.empty() ? "" : "; did you mean '" + guess + "'?");
  }

  std::optional<Shape> infer(LayerSpec& spec, const std::vector<int>& inputs) {
    std::vector<Shape> shapes;
    shapes.reserve(inputs.size());
    for (int value : inputs) shapes.push_back(values[static_cast<std::size_t>(value)].shape);
    try {
      const Shape shape = spec.layer->infer(shapes);
      check_sizes(*spec.layer, shape);
      return shape;
    } catch (const Error& error) {
      problem(spec, error.message() + shapes_so_far());
      return std::nullopt;
    }
  }

  std::string shapes_so_far() const {
    const std::size_t first = values.size() - std::min(values.size(), shown_shapes);
    std::string text = first > 0 ? "..." : "";
    for (std::size_t v = first; v < values.size(); ++v) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", values[v].name,
                          to_string(values[v].shape));
    }
    return "; shapes so far: " + text;
  }

  void share(const LayerSpec& spec) {
    const auto other = std::find_if(nodes.begin(), nodes.end() - 1, [&](const Graph::Node& node) {
      return node.name == spec.share;
    });
    if (other == nodes.end() - 1) {
      return problem(spec, fmt::format("'share': {}", unknown_name(spec.share)));
    }
    if (spec.layer->parameters().empty()) return problem(spec, "has no parameters to share");
    if (other->kind != spec.kind || !same_parameters(*other->layer, *spec.layer)) {
      return problem(spec, fmt::format("cannot share the parameters of {} (a {} with {}): it is a "
                                       "{} with {}",
                                       other->name, other->kind, shapes_text(*other->layer),
                                       spec.kind, shapes_text(*spec.layer)));
    }
    const auto chained = owners.find(other->name);
    owners[spec.name] = chained == owners.end() ? other->name : chained->second;
  }

  void check_readers() {
    std::vector<bool> read(values.size(), false);
    for (const Graph::Node& node : nodes) {
      for (int value : node.inputs) read[static_cast<std::size_t>(value)] = true;
    }
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (!read[i])
        problems_.add(spec_.where, fmt::format("no layer reads input {}", spec_.inputs[i].name));
    }
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
      if (!read[static_cast<std::size_t>(nodes[i].output)]) {
        problem(spec_.layers[i], "no layer reads it; only the last layer may end the model");
      }
    }
  }

  void check_loss() {
    const LayerSpec& last = spec_.layers.back();
    const Shape& shape = values[static_cast<std::size_t>(output)].shape;
    if (spec_.loss.kind != "cross_entropy") {
      if (spec_.loss.label_smoothing != 0 || spec_.loss.ignore_index) {
        problems_.add(
            spec_.loss.where,
            "'label_smoothing' and 'ignore_index' are for cross_entropy, not " + spec_.loss.kind);
      }
      return;
    }
    if (spec_.classes == 0 && shape.rank() == 1) spec_.classes = shape[0];
    if (shape == Shape{spec_.classes}) {
      if (last.kind == "softmax") {
        problems_.warn(last.where, "cross_entropy applies softmax itself: layer " + last.name +
                                       " applies it twice");
      }
      return;
    }
    problem(last, fmt::format("the loss needs {} numbers a sample, one a class, not a shape of {}",
                              spec_.classes, to_string(shape)) +
                      (shape.rank() == 3 ? "; a layer { flatten = true } may be missing" : ""));
  }

  ModelSpec& spec_;
  Problems& problems_;
  std::map<std::string, int> value_of_;  // -1: its layer has a problem
  std::string previous_;
};

}  // namespace

Graph::Graph(ModelSpec spec, Problems& problems) : spec_(std::move(spec)) {
  Builder builder(spec_, problems);
  if (!builder.build()) return;
  values_ = std::move(builder.values);
  nodes_ = std::move(builder.nodes);
  output_ = builder.output;
  fuse_nodes(nodes_, values_, output_);
  link();
  place_parameters(builder.owners);
}

void Graph::link() {
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    values_[static_cast<std::size_t>(nodes_[n].output)].producer = static_cast<int>(n);
    for (int value : nodes_[n].inputs) {
      values_[static_cast<std::size_t>(value)].readers.push_back(static_cast<int>(n));
    }
  }
}

void Graph::place_parameters(const std::map<std::string, std::string>& owners) {
  const auto owner_of = [&](const Node& node) {
    const auto owner = owners.find(node.name);
    return owner == owners.end() ? node.name : owner->second;
  };
  std::map<std::string, std::vector<std::size_t>> users;  // by owner, in order
  std::map<std::string, const Layer*> layer_of;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    users[owner_of(nodes_[n])].push_back(n);
    layer_of[nodes_[n].name] = nodes_[n].layer;
  }
  // Backward, which runs from the last node to the first, is done with parameters at their first
  // user (mostly the owner; but fusion may have moved that behind others).
  for (std::size_t n = nodes_.size(); n-- > 0;) {
    const std::string owner = owner_of(nodes_[n]);
    const auto& sharing = users[owner];
    if (sharing.front() != n) continue;
    add_parameters(nodes_[n], owner, *layer_of.at(owner));
    for (std::size_t user : sharing) {
      nodes_[user].parameters = nodes_[n].parameters;
      nodes_[user].statistics = nodes_[n].statistics;
      nodes_[user].uses = static_cast<int>(sharing.size());
    }
  }
}

void Graph::add_parameters(Node& node, const std::string& owner, const Layer& layer) {
  constexpr std::int64_t alignment = 64 / sizeof(float);
  for (const ParameterSpec& spec : layer.parameters()) {
    const std::int64_t elements = spec.shape.elements();
    const std::int64_t room = (elements + alignment - 1) / alignment * alignment;
    node.parameters.push_back(static_cast<int>(parameters_.size()));
    parameters_.push_back({owner + "/" + spec.name, spec, flat_elements_, elements, room});
    parameter_elements_ += elements;
    flat_elements_ += room;
  }
  for (const StatisticSpec& spec : layer.statistics()) {
    const std::int64_t elements = spec.shape.elements();
    node.statistics.push_back(static_cast<int>(statistics_.size()));
    statistics_.push_back({owner + "/" + spec.name, spec, statistic_elements_, elements});
    statistic_elements_ += elements;
  }
}

std::int64_t Graph::macs_per_sample() const {
  std::int64_t sum = 0;
  for (const Node& node : nodes_) sum += node.layer->macs();
  return sum;
}

void Graph::initialize(std::span<float> weights, std::span<float> statistics,
                       std::uint64_t seed) const {
  require_equal(flat_elements_, static_cast<std::int64_t>(weights.size()), "weights' size");
  require_equal(statistic_elements_, static_cast<std::int64_t>(statistics.size()),
                "statistics' size");
  for (const Parameter& p : parameters_) {
    annulus::initialize(
        weights.subspan(static_cast<std::size_t>(p.offset), static_cast<std::size_t>(p.elements)),
        p.spec.initializer, p.spec.fan_in, p.spec.fan_out, seed, p.name);
  }
  for (const Statistic& s : statistics_) {
    const auto part = statistics.subspan(static_cast<std::size_t>(s.offset),
                                         static_cast<std::size_t>(s.elements));
    std::fill(part.begin(), part.end(), s.spec.initial);
  }
}

}  // namespace annulus
