// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace annulus {

// Faults put in on purpose, to test what a job does with them: the one place for them. The variable
// ANNULUS_FAULT holds a list, separated by ';', of
//
//   KIND@rank=R,iteration=I        at the start of iteration I of rank R
//
// where KIND is `throw` (an Error of kind bug), `kill` (the process ends as by kill -9), or
// `slow:MS` (waits MS milliseconds). Without `rank` every rank, without `iteration` every
// iteration. Off in normal use: nothing is read in a step but an empty list.
class Faults {
 public:
  Faults() = default;
  // Error (usage) where the text is no such list.
  explicit Faults(std::string_view text);
  // What ANNULUS_FAULT says; none where it is not set.
  static Faults from_environment();

  // Does what is planned for this rank and iteration.
  void at_iteration(int rank, std::int64_t iteration) const;
  bool empty() const { return faults_.empty(); }

 private:
  struct Fault {
    std::string kind;
    std::int64_t milliseconds = 0;
    std::int64_t rank = -1;       // -1: every one
    std::int64_t iteration = -1;  // -1: every one
  };
  static Fault parse(std::string_view text);

  std::vector<Fault> faults_;
};

}  // namespace annulus
