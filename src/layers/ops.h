// SPDX-License-Identifier: Apache-2.0
// The operations that a device must offer: what stands between the device-neutral layers and
// layers/cpu (oneDNN) and layers/cuda (cuDNN). Layers check shapes; operations trust them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/shape.h"
#include "core/trace.h"

namespace annulus {

// How a backend keeps a value in memory: blocked, channels last, padded ... Opaque to all others.
class Layout {
 public:
  virtual ~Layout() = default;
  virtual std::size_t bytes() const = 0;
};

// A value of the graph for one batch size: its logical shape (N, C, H, W) or (N, F), and its
// layout. All values are f32.
struct ValueType {
  Shape shape;
  std::shared_ptr<const Layout> layout;
  std::size_t bytes() const { return layout->bytes(); }
};

enum class Mode { train, evaluate };

// What is common to the operations of one node.
struct OpRequest {
  std::string name;  // of the layer: keys its random numbers, stands in messages
  Mode mode = Mode::train;
  std::uint64_t seed = 0;
  std::vector<ValueType> inputs;
  std::vector<bool> input_gradient;  // wanted for that input (train)
  std::vector<int>
      parameters;  // ids of its parameters in the graph: equal ids share packed weights
  int uses = 1;    // nodes that share these parameters
};

// What changes from step to step.
struct StepContext {
  std::int64_t iteration = 0;
  std::span<const std::int64_t> samples;  // ids, one a batch entry
  std::int64_t weights_version = 0;       // changes whenever weights or running statistics do
  Trace* trace = nullptr;                 // where executors record the time of each layer
};

// Memory is the device's, each piece at a multiple of 64 bytes. Parameters and their gradients are
// dense f32, each in the order that Backend::parameter_layout() says.
struct ForwardCall {
  std::span<const float* const> inputs;
  float* output = nullptr;
  std::span<const float* const> parameters;
  std::span<const float* const> running;  // running statistics (evaluate)
  std::span<float* const> batch_sums;  // train: gets batch size / uses times the batch's statistic
  std::byte* saved = nullptr;          // kept from forward to backward
  std::byte* workspace = nullptr;      // for this call only
  StepContext step;
};

struct BackwardCall {
  std::span<const float* const> inputs;  // null where the op does not read it
  const float* output = nullptr;         // null where the op does not read it
  const float* output_gradient = nullptr;
  std::span<float* const> input_gradients;  // overwritten, in the input's layout; null: not wanted
  std::span<const float* const> parameters;
  std::span<float* const> parameter_gradients;  // overwritten
  const std::byte* saved = nullptr;
  std::byte* workspace = nullptr;
  StepContext step;
};

// What an operation wants of the memory plan.
struct OpMemory {
  std::size_t saved = 0;
  std::size_t forward_workspace = 0;
  std::size_t backward_workspace = 0;
  std::vector<bool> backward_reads_input;  // one an input
  bool backward_reads_output = false;
  bool alias = false;  // output is input 0 seen with another shape: forward and backward do nothing
  bool forward_in_place = false;   // output may take the memory of an input that is not read later
  std::size_t in_place_input = 0;  // which one
  bool backward_in_place = false;  // gradient of input 0 may take the memory of the output's
};

// One node on the device for one batch size: owns its primitives or plans, created once. No call
// allocates. Not for use by two threads at once.
class Op {
 public:
  virtual ~Op() = default;
  virtual const ValueType& output() const = 0;
  virtual OpMemory memory() const = 0;
  virtual void forward(const ForwardCall& call) = 0;
  virtual void backward(const BackwardCall& call) = 0;  // Mode::train only
  // "jit:avx512_core", "own" ...: what does the work, for tables.
  virtual std::string implementation() const = 0;
};

struct Extent2d {
  std::int64_t h = 1;
  std::int64_t w = 1;
};

// Rows and columns that are added around an image.
struct Padding2d {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t bottom = 0;
  std::int64_t right = 0;
};

// What is done to the output of a convolution in the same pass over memory (evaluate):
// y = relu?(normalised?(x) (+ input 1 where add)), see BatchNormDesc. Where it normalises, scale
// and shift (C) follow the convolution's parameters, and the statistics are mean and variance (C).
struct Conv2dTail {
  std::optional<double> norm_epsilon;  // none: it does not normalise
  bool add = false;
  bool relu = false;
};

// Parameters: weight (out, in / groups, kernel h, kernel w), bias (out) where `bias`.
struct Conv2dDesc {
  std::int64_t out_channels = 1;
  Extent2d kernel;
  Extent2d stride;
  Extent2d dilation;  // 1: dense
  Padding2d padding;
  std::int64_t groups = 1;
  bool bias = true;
  Conv2dTail tail = {};  // where Backend::fuses_tails()
};

// Parameters: weight (out, in), bias (out) where `bias`. Input (N, F), or (N, C, H, W) seen as (N,
// CHW).
struct LinearDesc {
  std::int64_t out_features = 1;
  bool bias = true;
};

// y = relu?(scale (x - mean) / sqrt(variance + epsilon) + shift (+ input 1 where add)). Parameters:
// scale (C), shift (C); statistics: mean, variance (C), biased for normalising; batch_sums gets the
// unbiased variance.
struct BatchNormDesc {
  double epsilon = 1e-5;
  bool add = false;
  bool relu = false;
};

enum class PoolKind { max, average };

// `output` is given, so that floor and ceil modes are the layer's business; windows are clipped at
// the end. Maximum: padding never wins, a NaN in the window does, the first of equal values gets
// the gradient. Average: over the elements of the window that are in the input, or with
// `count_padding` in the padded input.
struct Pool2dDesc {
  PoolKind kind = PoolKind::max;
  Extent2d kernel;
  Extent2d stride;
  Padding2d padding;
  Extent2d output;
  bool count_padding = false;
};

// Element e of sample s is kept where uniform(e, s, iteration) >= rate, and then divided by 1 -
// rate; e counts in the logical layout within the sample.
struct DropoutDesc {
  double rate = 0.5;
};

// What one batch adds to the loss and the metrics: plain sums, so that batches, shards and ranks
// add up.
struct LossSums {
  double loss = 0;             // sum over counted samples (elements / row for mean squared error)
  double counted = 0;          // samples that counted
  double correct[2] = {0, 0};  // class ids: of top-k, for the two k of the loss
  double absolute_error = 0;   // values: sum over counted samples of the mean absolute error
  LossSums& operator+=(const LossSums& other);
};

struct CrossEntropyDesc {
  double label_smoothing = 0;
  std::optional<std::int64_t> ignore_index;
  std::int64_t top_k[2] = {1, 5};
};

// The loss of a batch of predictions. Not for use by two threads at once.
class LossOp {
 public:
  virtual ~LossOp() = default;
  virtual std::size_t workspace() const = 0;
  // Adds up the loss of `prediction` (in the layout given at creation) against `targets`: i32 class
  // ids (N), or f32 values of the prediction's shape. Where `gradient` is not null it gets scale
  // times the gradient of LossSums::loss.
  virtual LossSums run(const float* prediction, const void* targets, double scale, float* gradient,
                       std::byte* workspace) = 0;
};

// The order in which a backend keeps the elements of a parameter, its gradient and its moments,
// where that is not the logical row-major one: the order that its primitives read, so that no step
// has to reorder them.
class ParameterLayout {
 public:
  virtual ~ParameterLayout() = default;
  // Between the logical order and the kept one, in host memory of as many elements as the
  // parameter has.
  virtual void pack(const float* plain, float* kept) const = 0;
  virtual void unpack(const float* kept, float* plain) const = 0;
};

// The operations of one device. One object a rank; it must outlive what it makes.
class Backend {
 public:
  virtual ~Backend() = default;

  // The layout of values that come from or go to the host: dense, row-major.
  virtual ValueType plain(const Shape& shape) = 0;

  virtual std::unique_ptr<Op> conv2d(const OpRequest& request, const Conv2dDesc& desc) = 0;
  // Whether conv2d() takes a tail in Mode::evaluate. Its ReLU may turn a NaN into 0: who evaluates
  // must see to it that weights, statistics and inputs are finite.
  virtual bool fuses_tails() const { return false; }
  virtual std::unique_ptr<Op> linear(const OpRequest& request, const LinearDesc& desc) = 0;
  virtual std::unique_ptr<Op> batch_norm(const OpRequest& request, const BatchNormDesc& desc) = 0;
  virtual std::unique_ptr<Op> pool2d(const OpRequest& request, const Pool2dDesc& desc) = 0;
  virtual std::unique_ptr<Op> relu(const OpRequest& request) = 0;
  virtual std::unique_ptr<Op> dropout(const OpRequest& request, const DropoutDesc& desc) = 0;
  virtual std::unique_ptr<Op> softmax(const OpRequest& request) = 0;  // over axis 1
  virtual std::unique_ptr<Op> add(const OpRequest& request) = 0;      // two or more inputs
  virtual std::unique_ptr<Op> concat(const OpRequest& request) = 0;   // along axis 1
  virtual std::unique_ptr<Op> flatten(const OpRequest& request) = 0;  // (N, C, H, W) to (N, CHW)
  // While `choose` is on, an operation made for a parameter that has no layout yet chooses one;
  // what is made later, for whatever batch, follows. All ranks must let the same operations choose.
  // Without a choice a parameter is plain.
  virtual void choose_parameter_layouts(bool /*choose*/) {}
  // Null: plain. Valid as long as the backend.
  virtual const ParameterLayout* parameter_layout(int /*parameter*/) const { return nullptr; }

  // Any layout to the plain one.
  virtual std::unique_ptr<Op> to_plain(const OpRequest& request) = 0;

  virtual std::unique_ptr<LossOp> cross_entropy(const ValueType& prediction,
                                                const CrossEntropyDesc& desc) = 0;
  virtual std::unique_ptr<LossOp> mean_squared_error(const ValueType& prediction) = 0;

  // into += from, for two memories of one value type (gradients of a value with several readers).
  virtual void accumulate(const ValueType& type, float* into, const float* from) = 0;

  // Sets `bytes` (a multiple of 4) to copies of a 32-bit pattern: the poison of dead values.
  virtual void fill(std::byte* memory, std::size_t bytes, std::uint32_t pattern) = 0;

  // Memory that the backend holds itself (packed weights), now.
  virtual std::size_t bytes() const = 0;
};

// What a user may ask of a backend beyond the model.
struct BackendOptions {
  bool winograd = true;  // cpu: convolutions by Winograd's algorithm where it is faster
  bool tails = true;     // evaluation: batch norm, sum and ReLU done by the convolution before them
};

// The backend of the device: the one switch on devices in this folder (ops.cpp).
std::unique_ptr<Backend> make_backend(DeviceContext& device, BackendOptions options = {});
std::unique_ptr<Backend> make_cpu_backend(DeviceContext& device, BackendOptions options = {});
// layers/cuda/backend.cpp, or layers/no_cuda.cpp, which throws Error (resource).
std::unique_ptr<Backend> make_cuda_backend(DeviceContext& device, BackendOptions options = {});

}  // namespace annulus
