// SPDX-License-Identifier: Apache-2.0
#include "io/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/error.h"
#include "io/batch_maker.h"

namespace annulus {

// Batch i lives in slot i mod slots. A worker takes the next index once its slot is free, that is
// once the batch before it in the slot has been used; so batches are finished in any order and
// handed over in theirs. An error takes the place of the batch that it kept from being made.
class Loader::State {
 public:
  State(const Dataset& dataset, const Sampler& sampler, SliceAt slice_at,
        const LoaderOptions& options);
  ~State();

  const LoadedBatch* next();
  double waited_s() const { return waited_s_; }
  std::size_t bytes() const;

 private:
  enum class Content { none, batch, end, error };
  struct Slot {
    BatchBuffer buffer;
    Content content = Content::none;
    std::exception_ptr error;
  };

  Slot& slot_of(std::int64_t index) {
    return slots_[static_cast<std::size_t>(index) % slots_.size()];
  }
  Content make(std::int64_t index, Slot& slot, std::span<float> scratch);
  void start(std::int64_t workers);
  void stop();
  void work(int worker, std::span<float> scratch);
  Content make_traced(int worker, std::int64_t index, Slot& slot, std::span<float> scratch);
  void release();

  BatchMaker maker_;
  SliceAt slice_at_;
  const Progress* progress_;
  std::vector<Slot> slots_;
  std::vector<std::vector<float>> scratch_;  // one a worker, or one for the caller's thread

  // The caller's thread alone.
  std::int64_t next_ = 0;  // the batch that next() gives next
  bool in_use_ = false;    // the caller has batch next_ - 1
  double waited_s_ = 0;

  std::mutex mutex_;
  std::condition_variable slot_free_;
  std::condition_variable slot_done_;
  std::int64_t taken_ = 0;     // batches that workers have begun
  std::int64_t released_ = 0;  // batches whose slot is free again
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

Loader::State::State(const Dataset& dataset, const Sampler& sampler, SliceAt slice_at,
                     const LoaderOptions& options)
    : maker_(dataset, sampler, options),
      slice_at_(std::move(slice_at)),
      progress_(options.progress) {
  const bool threaded = options.workers > 0 && options.prefetch > 0;
  // One more than are ready ahead: the batch in use.
  slots_.resize(static_cast<std::size_t>(threaded ? options.prefetch + 1 : 1));
  for (Slot& slot : slots_) slot.buffer = maker_.make_buffer();
  const std::int64_t workers = threaded ? std::min(options.workers, options.prefetch + 1) : 0;
  scratch_.resize(static_cast<std::size_t>(std::max<std::int64_t>(workers, 1)));
  for (std::vector<float>& scratch : scratch_) scratch = maker_.make_scratch();
  dataset.prepare(static_cast<int>(scratch_.size()), options.max_count);
  start(workers);
}

Loader::State::~State() {
  stop();
}

void Loader::State::start(std::int64_t workers) {
  threads_.reserve(static_cast<std::size_t>(workers));
  try {
    for (std::int64_t i = 0; i < workers; ++i) {
      const std::span<float> scratch = scratch_[static_cast<std::size_t>(i)];
      threads_.emplace_back([this, i, scratch] { work(static_cast<int>(i), scratch); });
    }
  } catch (const std::system_error& error) {
    const std::size_t running = threads_.size();
    stop();
    fail(ErrorKind::resource, "cannot start loader thread {} of {}: {}; lower `workers`",
         running + 1, workers, error.what());
  }
}

void Loader::State::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  slot_free_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Loader::State::Content Loader::State::make(std::int64_t index, Slot& slot,
                                           std::span<float> scratch) {
  try {
    const std::optional<Slice> slice = slice_at_(index);
    if (!slice) return Content::end;
    maker_.fill(slot.buffer, *slice, scratch);
    return Content::batch;
  } catch (...) {
    slot.error = std::current_exception();
    return Content::error;
  }
}

Loader::State::Content Loader::State::make_traced(int worker, std::int64_t index, Slot& slot,
                                                  std::span<float> scratch) {
  Trace* const trace = progress_ == nullptr ? nullptr : progress_->trace.load();
  const TraceRange range(trace, Trace::first_worker + worker, "batch", "load", index);
  return make(index, slot, scratch);
}

void Loader::State::work(int worker, std::span<float> scratch) {
  std::unique_lock lock(mutex_);
  while (true) {
    slot_free_.wait(lock, [&] {
      return stopping_ || taken_ < released_ + static_cast<std::int64_t>(slots_.size());
    });
    if (stopping_) return;
    const std::int64_t index = taken_++;
    Slot& slot = slot_of(index);
    lock.unlock();
    const Content content = make_traced(worker, index, slot, scratch);
    lock.lock();
    slot.content = content;
    slot_done_.notify_one();
    if (content != Content::batch) return;  // nothing after the end or an error is wanted
  }
}

// The batch that the caller has had is free for the workers from now on.
void Loader::State::release() {
  if (!in_use_) return;
  in_use_ = false;
  {
    const std::scoped_lock lock(mutex_);
    slot_of(next_ - 1).content = Content::none;
    released_ = next_;
  }
  slot_free_.notify_one();
}

const LoadedBatch* Loader::State::next() {
  const auto begin = std::chrono::steady_clock::now();
  release();
  Slot& slot = slot_of(next_);
  Content content = Content::none;
  if (threads_.empty()) {
    content = make(next_, slot, scratch_.front());
  } else {
    std::unique_lock lock(mutex_);
    slot_done_.wait(lock, [&] { return slot.content != Content::none; });
    content = slot.content;
  }
  waited_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (content == Content::error) std::rethrow_exception(slot.error);
  if (content == Content::end) return nullptr;
  ++next_;
  in_use_ = true;
  return &slot.buffer.batch;
}

std::size_t Loader::State::bytes() const {
  std::size_t total = 0;
  for (const Slot& slot : slots_) {
    for (const Tensor& input : slot.buffer.inputs) total += input.view().bytes();
    if (slot.buffer.targets.view().data != nullptr) total += slot.buffer.targets.view().bytes();
  }
  for (const std::vector<float>& scratch : scratch_) total += scratch.size() * sizeof(float);
  return total;
}

Loader::Loader(const Dataset& dataset, const Sampler& sampler, SliceAt slice_at,
               const LoaderOptions& options)
    : state_(std::make_unique<State>(dataset, sampler, std::move(slice_at), options)) {}

Loader::~Loader() = default;

const LoadedBatch* Loader::next() {
  return state_->next();
}

double Loader::waited_s() const {
  return state_->waited_s();
}

std::size_t Loader::bytes() const {
  return state_->bytes();
}

}  // namespace annulus
