// SPDX-License-Identifier: Apache-2.0
#include "io/data_spec.h"

namespace annulus {
namespace {

// `inputs = "path"`, or a table from the names of the model's inputs to paths.
void read_inputs(const Value& value, std::vector<InputSource>& inputs, Problems& problems) {
  const auto add = [&](const std::string& name, const Value& path) {
    const auto* text = path.get<std::string>();
    if (text != nullptr && !text->empty()) {
      inputs.push_back({name, *text});
    } else {
      problems.add(path.where,
                   fmt::format("'{}' must be the path of a data set, not {}",
                               name.empty() ? "inputs" : "inputs." + name, to_string(path)));
    }
  };
  inputs.clear();
  const auto* table = value.get<Value::Table>();
  if (table == nullptr) return add("", value);
  if (table->empty()) problems.add(value.where, "'inputs' names no data set");
  for (const Member& member : *table) add(member.key, member.value);
}

}  // namespace

Schema describe(AugmentSpec& spec) {
  Schema schema;
  schema
      .key("crop_padding", &spec.crop_padding,
           "black pixels put around each image, of which a random window of its size is taken")
      .at_least(0)
      .at_most(4096);
  schema.key("flip", &spec.flip, "mirror images left to right with probability one half");
  return schema;
}

Schema describe(DataSpec& spec) {
  Schema schema;
  schema.key("file", &spec.file, "the HDF5 file").required().path();
  schema
      .key(
          "inputs", "path of a data set, or table { input = path, ... }",
          [&spec](const Value& value, Problems& problems) {
            read_inputs(value, spec.inputs, problems);
          },
          "the data set of the model's input, or of each of its inputs by name")
      .required();
  schema.key("labels", &spec.labels,
             "the data set of class ids (N) or (N, 1), or of float targets (N, ...)");
  schema.key("layout", &spec.layout, "order of the axes of images in the file")
      .one_of({"NCHW", "NHWC"});
  schema.key("scale", &spec.scale, "inputs are (value * scale - mean) / std");
  schema.key("mean", &spec.mean, "of all channels (one number) or of each; empty: 0");
  schema.key("std", &spec.std, "of all channels (one number) or of each; empty: 1").above(0);
  schema.key("shuffle", &spec.shuffle, "a new order of the samples each epoch; training only");
  schema.key("workers", &spec.workers, "threads that read and convert; 0: read when asked")
      .at_least(0)
      .at_most(256);
  schema.key("prefetch", &spec.prefetch, "batches ready ahead; 0: read when asked")
      .at_least(0)
      .at_most(1024);
  schema.table("augment", describe(spec.augment), "how training images are varied");
  return schema;
}

Schema describe(DataOptions& options) {
  Schema schema;
  schema.table("train", describe(options.train), "the training set").present(&options.has_train);
  schema.table("test", describe(options.test), "the test set").present(&options.has_test);
  schema.key("synthetic", &options.synthetic,
             "random inputs of the model's shape and random targets; no file is read");
  schema
      .key("samples", &options.samples,
           "size of the synthetic training set, and what `check` assumes without the file")
      .at_least(1)
      .at_most(1e15)
      .unusual_above(1e11);
  schema.key("drop_last", &options.drop_last,
             "leave out the last batch of an epoch where it is not full");
  return schema;
}

}  // namespace annulus
