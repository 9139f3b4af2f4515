// SPDX-License-Identifier: Apache-2.0
// The only file with doctest's implementation.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
