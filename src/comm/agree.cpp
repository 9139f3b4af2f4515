// SPDX-License-Identifier: Apache-2.0
#include "comm/agree.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>

#include "core/error.h"

namespace annulus {
namespace {

TensorView view_of(std::string& text) {
  return {text.data(), {static_cast<std::int64_t>(text.size())}, DType::u8};
}

// What `work` throws, with its origin; exceptions that are not ours are bugs of ours.
std::optional<Error> error_of(const Communicator& comm, const std::function<void()>& work) {
  std::optional<Error> error;
  try {
    work();
  } catch (const std::exception& exception) {
    error = to_error(exception);
  }
  const std::string& host = comm.hosts()[static_cast<std::size_t>(comm.node())];
  if (error && comm.size() > 1) error->on(comm.rank(), host);
  return error;
}

// An Error as a text: each field is its length, a colon, and itself.
class Fields {
 public:
  explicit Fields(std::string text = {}) : text_(std::move(text)) {}

  void put(const std::string& field) { text_ += fmt::format("{}:", field.size()) + field; }
  void put(int number) { put(fmt::format("{}", number)); }
  std::string take() {
    const std::size_t colon = text_.find(':', next_);
    const std::size_t size = std::stoul(text_.substr(next_, colon - next_));
    next_ = colon + 1 + size;
    return text_.substr(colon + 1, size);
  }
  int take_number() { return std::stoi(take()); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::size_t next_ = 0;
};

std::string pack(const Error& error) {
  Fields fields;
  fields.put(error.exit_code());
  fields.put(error.message());
  fields.put(error.expected());
  fields.put(error.found());
  fields.put(error.where().file);
  fields.put(error.where().line);
  fields.put(error.where().column);
  fields.put(error.rank());
  fields.put(error.host());
  return fields.text();
}

Error unpack(const std::string& text) {
  Fields fields(text);
  const auto kind = static_cast<ErrorKind>(fields.take_number());
  Error error(kind, fields.take());
  std::string expected = fields.take();
  error.values(std::move(expected), fields.take());
  Location where;
  where.file = fields.take();
  where.line = fields.take_number();
  where.column = fields.take_number();
  error.at(std::move(where));
  const int rank = fields.take_number();
  error.agreed(rank, fields.take());
  return error;
}

std::string broadcast_text(Communicator& comm, std::string text, int root) {
  auto size = static_cast<std::int64_t>(text.size());
  comm.broadcast(std::span(&size, 1), root);
  text.resize(static_cast<std::size_t>(size));
  comm.broadcast(view_of(text), root);
  return text;
}

}  // namespace

void agree(Communicator& comm, const std::function<void()>& work) {
  const std::optional<Error> mine = error_of(comm, work);
  // After a lost peer there is nobody to agree with.
  if (mine && (comm.size() == 1 || mine->kind() == ErrorKind::peer)) throw Error(*mine);
  constexpr auto nobody = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = mine ? comm.rank() : nobody;
  comm.all_reduce(std::span(&first, 1), ReduceOp::min);
  if (first == nobody) return;
  const int root = static_cast<int>(first);
  throw unpack(broadcast_text(comm, comm.rank() == root ? pack(*mine) : "", root));
}

std::string agree_on_text(Communicator& comm, const std::function<std::string()>& work) {
  std::string text;
  agree(comm, [&] {
    if (comm.rank() == 0) text = work();
  });
  return broadcast_text(comm, std::move(text), 0);
}

std::int64_t agree_on_largest(Communicator& comm, std::int64_t value) {
  comm.all_reduce(std::span(&value, 1), ReduceOp::max);
  return value;
}

std::vector<std::string> gather_texts(Communicator& comm, const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  auto size = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> sizes(ranks);
  comm.all_gather(std::span(&size, 1), std::span(sizes));
  // Slices must be equal: all are as long as the longest.
  const auto slice = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  std::string padded = mine;
  padded.resize(slice);
  std::string all(slice * ranks, '\0');
  comm.all_gather(view_of(padded), view_of(all));
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    texts.push_back(all.substr(rank * slice, static_cast<std::size_t>(sizes[rank])));
  }
  return texts;
}

}  // namespace annulus
