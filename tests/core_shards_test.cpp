// SPDX-License-Identifier: Apache-2.0
#include <initializer_list>
#include <limits>

#include <doctest/doctest.h>

#include "core/shards.h"

namespace annulus {

TEST_CASE("shares have the bounds of the formula") {
  CHECK(share_of(10, 0, 4).begin == 0);
  CHECK(share_of(10, 0, 4).end == 2);
  CHECK(share_of(10, 1, 4).end == 5);
  CHECK(share_of(10, 2, 4).end == 7);
  CHECK(share_of(10, 3, 4).end == 10);
  CHECK(share_of(2, 0, 4).count() == 0);
  CHECK(share_of(2, 1, 4).count() == 1);
  CHECK(share_of(0, 3, 4).count() == 0);
}

TEST_CASE("shares cover all, in order, and differ by at most one") {
  for (std::int64_t count = 0; count <= 70; ++count) {
    for (std::int64_t parts = 1; parts <= 33; ++parts) {
      std::int64_t end = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        const Span64 share = share_of(count, part, parts);
        CHECK(share.begin == end);
        CHECK(share.count() >= count / parts);
        CHECK(share.count() <= (count + parts - 1) / parts);
        end = share.end;
      }
      CHECK(end == count);
    }
  }
}

TEST_CASE("shares of shares meet the bounds of shares") {
  // Shards on ranks: with ranks dividing shards, a rank's samples are the same however cut.
  for (std::int64_t count : {1437, 1440, 7, 64}) {
    for (std::int64_t ranks : {1, 2, 4, 8}) {
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const Span64 shards = share_of(8, rank, ranks);
        CHECK(share_of(count, shards.begin, 8).begin == share_of(count, rank, ranks).begin);
        CHECK(share_of(count, shards.end - 1, 8).end == share_of(count, rank, ranks).end);
      }
    }
  }
}

TEST_CASE("shares of the largest counts are exact") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(share_of(most, 0, 1).count() == most);
  CHECK(share_of(most, most - 1, most).begin == most - 1);
  CHECK(share_of(most, most - 1, most).end == most);
  CHECK(share_of(most, 1, 2).begin == most / 2);
  CHECK(share_of(most, 2, 3).begin == 6148914691236517204);
  CHECK(share_of(3, most - 1, most).begin == 2);
  CHECK(share_of(3, most - 1, most).end == 3);
}

}  // namespace annulus
