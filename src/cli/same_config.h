// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cli/options.h"
#include "comm/communicator.h"
#include "core/value.h"

namespace annulus {

// The first key, in the order of `first`, whose values differ, with both as TOML ("nothing" where
// there is none); nothing where all are equal.
struct Difference {
  std::string key;  // "optimizer.lr", "model.layers.2.conv"
  std::string first;
  std::string second;
};
std::optional<Difference> first_difference(const Value& first, const Value& second);

// Ranks may be started with command lines of their own, but not for different experiments: Error
// (usage), agreed on, from the first rank whose config is not that of rank 0. A config is read here
// only where a rank asks for it in other words than rank 0. Collective.
void require_same_config(Communicator& comm, const ConfigOptions& options);

}  // namespace annulus
