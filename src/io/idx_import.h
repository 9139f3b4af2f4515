// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace annulus {

// Turns a directory of IDX files as MNIST and its kin are distributed (train-images-idx3-ubyte,
// train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, or with a dot for the
// second dash) into one HDF5 file with train/images (N, 1, H, W), train/labels (N), test/images and
// test/labels, all u8. The test pair may be absent. Format:
// http://yann.lecun.com/exdb/mnist, "the IDX file format".
//
// Error (data) with file and both values: missing, compressed, wrong magic number, truncated, extra
// bytes, numbers of images and labels that differ. Error (output): the destination exists (it is
// never overwritten) or cannot be written; nothing half-written is left, nor where `check_stop`,
// called every few MB, ends the work by an exception.
void import_idx(const std::string& directory, const std::string& destination,
                const std::function<void()>& check_stop = {});

}  // namespace annulus
