// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/phase.h"

namespace annulus {

// Faults put in on purpose, to test what a job does with them: the one place for them. The variable
// ANNULUS_FAULT holds a list, separated by ';', of
//
//   KIND@rank=R,iteration=I        at the start of iteration I of rank R
//   KIND@rank=R,phase=P            where rank R enters a phase (core/phase.h)
//
// where KIND is `throw:CODE` (an Error that ends with this exit code; 1 where none is given),
// `kill` (the process ends as by kill -9), `signal:N` (the process gets signal N; 19 stops it), or
// `slow:MS` (waits MS milliseconds). Without `rank`
// every rank, without `iteration` and `phase` every iteration. Off in normal use: nothing is read
// in a step but an empty list.
class Faults {
 public:
  Faults() = default;
  // Error (usage) where the text is no such list.
  explicit Faults(std::string_view text);
  // What ANNULUS_FAULT says; none where it is not set.
  static Faults from_environment();

  // Error (usage) where a fault is planned for a rank that a job of `ranks` does not have.
  void require_ranks(int ranks) const;
  // Do what is planned for this rank, and this iteration or phase.
  void at_iteration(int rank, std::int64_t iteration) const;
  void at_phase(int rank, Phase phase) const;
  bool empty() const { return faults_.empty(); }

 private:
  struct Fault {
    std::string kind;
    std::int64_t number = 0;      // exit code, signal or milliseconds
    std::int64_t rank = -1;       // -1: every one
    std::int64_t iteration = -1;  // -1: every one
    std::optional<Phase> phase;
    std::string text;

    void happen(const std::string& where) const;
  };
  static Fault parse(std::string_view text);
  static void parse_place(std::string_view item, Fault& fault);

  std::vector<Fault> faults_;
};

}  // namespace annulus
