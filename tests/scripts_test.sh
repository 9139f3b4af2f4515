#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests of the checks in scripts/: each case plants one fault in a small tree of its own and looks
# for the line that names it. scripts_test.sh CASE
set -euo pipefail

source=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }

# expect STATUS TEXT COMMAND...: the command ends with STATUS and prints a line that holds TEXT.
expect() {
  local status=$1 text=$2 got=0 output
  shift 2
  output=$("$@" 2>&1) || got=$?
  [ "$got" = "$status" ] || fail "'$*' ended with $got instead of $status: $output"
  grep -qF -- "$text" <<<"$output" || fail "'$*' did not print '$text' but: $output"
}

includes() {  # includes FILE INCLUDE [RULE]: a file with that line breaks that rule, or none
  mkdir -p "$tree/$(dirname "$1")"
  printf '#pragma once\n#include %s\n' "$2" >"$tree/$1"
  if [ -n "${3-}" ]; then
    expect 1 "$1:2: $3" "$source/scripts/check_includes" "$tree"
  else
    expect 0 "" "$source/scripts/check_includes" "$tree"
  fi
  rm "$tree/$1"
}

case ${1-} in
  folders)
    mkdir -p "$tree/src/core"
    includes src/core/a.h '"core/b.h"'
    includes src/core/a.h '"io/loader.h"' 'core includes "io/loader.h"; it may include core'
    for folder in topology comm layers io config; do
      includes "src/$folder/a.h" '"core/b.h"'
      includes "src/$folder/a.h" "\"$folder/b.h\""
      includes "src/$folder/a.h" '"train/b.h"' "$folder includes \"train/b.h\""
      includes "src/$folder/a.h" '"cli/b.h"' "$folder includes \"cli/b.h\""
    done
    includes src/layers/cpu/a.cpp '"comm/b.h"' 'layers includes "comm/b.h"'
    includes src/io/a.h '"layers/b.h"' 'io includes "layers/b.h"'
    includes src/comm/a.h '"io/b.h"' 'comm includes "io/b.h"'
    includes src/train/a.h '"layers/b.h"'
    includes src/train/a.h '"cli/b.h"' 'train includes "cli/b.h"'
    includes src/cli/a.h '"train/b.h"'
    ;;
  unknown_folder)
    mkdir -p "$tree/src/core" "$tree/src/extra"
    echo '#pragma once' >"$tree/src/extra/a.h"
    expect 1 'src/extra/a.h:1: folder src/extra is not one of the house' \
      "$source/scripts/check_includes" "$tree"
    rm -r "$tree/src/extra"
    includes src/core/a.cpp '"a.h"' '"a.h" is not written folder/file.h from src/'
    includes src/core/a.cpp '"../io/a.h"' '"../io/a.h" is not written folder/file.h from src/'
    includes src/core/a.cpp '<core/a.h>' 'own header <core/a.h> is written in quotes'
    ;;
  third_parties)
    mkdir -p "$tree/src/core"
    third() {  # third NAME HEADER RIGHT WRONG: allowed in file RIGHT, not in WRONG
      includes "$3" "$2"
      includes "$4" "$2" "$2 ($1) belongs in"
    }
    third oneDNN '<oneapi/dnnl/dnnl.hpp>' src/layers/cpu/a.cpp src/layers/a.cpp
    third MPI '<mpi.h>' src/comm/mpi/a.cpp src/comm/a.cpp
    third MPI '<mpi.h>' src/comm/mpi/a.h src/cli/a.cpp
    third HDF5 '<hdf5.h>' src/io/hdf5_file.cpp src/io/loader.cpp
    third HDF5 '<H5Fpublic.h>' src/io/hdf5.cpp src/train/a.cpp
    third hwloc '<hwloc.h>' src/topology/a.cpp src/core/a.cpp
    third NVML '<nvml.h>' src/topology/a.cpp src/cli/a.cpp
    third toml++ '<toml++/toml.h>' src/config/a.cpp src/train/a.cpp
    third CLI11 '<CLI/CLI.hpp>' src/cli/a.cpp src/train/a.cpp
    third CUDA '<cuda_runtime.h>' src/layers/cuda/a.cpp src/layers/a.cpp
    third CUDA '<cudnn.h>' src/core/cuda/a.cpp src/core/a.cpp
    third NCCL '<nccl.h>' src/comm/nccl/a.cpp src/core/cuda/a.cpp
    third OpenMP '<omp.h>' src/core/cpu/a.cpp src/layers/cpu/a.cpp
    mkdir -p "$tree/src/io"
    printf '\n#pragma omp parallel\n' >"$tree/src/io/a.cpp"
    expect 1 'src/io/a.cpp:2: OpenMP belongs in core/cpu' "$source/scripts/check_includes" "$tree"
    ;;
  tree)
    git -C "$tree" init -q
    mkdir -p "$tree/src"
    cp "$source/.clang-format" "$tree"
    clean='// SPDX-License-Identifier: Apache-2.0'
    check() {  # check TEXT: the check of the planted file says so, and without the file it is silent
      expect 1 "$1" "$source/scripts/check_tree" "$tree"
      rm "$tree"/src/*
      expect 0 "" "$source/scripts/check_tree" "$tree"
    }
    printf '%s\nint a;\n' "$clean" >"$tree/src/a.cpp"
    expect 0 "" "$source/scripts/check_tree" "$tree"
    printf '%s\nconst char* a = "/%s/someone";\n' "$clean" home >"$tree/src/a.cpp"
    check 'src/a.cpp:2: a path of one machine'
    printf '%s\n// TO''DO: the rest\n' "$clean" >"$tree/src/a.cpp"
    check 'src/a.cpp:2: unfinished'
    printf '%s\nint   a;\n' "$clean" >"$tree/src/a.cpp"
    check 'src/a.cpp:2: not formatted'
    printf 'int a;\n' >"$tree/src/a.cpp"
    check 'src/a.cpp:1: the first line is not the SPDX line'
    { echo "$clean"; printf '\n%.0s' {1..500}; echo 'int a;'; } >"$tree/src/a.cpp"
    check 'src/a.cpp:502: more than 500 lines'
    head -c 1000001 /dev/zero >"$tree/src/a.h5"
    check 'src/a.h5:1: larger than 1 MB'
    printf 'a = 1 \n' >"$tree/src/a.toml"
    check 'src/a.toml:1: white space at the end'
    ;;
  setup)
    # A machine without apt-get: what is missing is named by command or header, and nothing is tried.
    mkdir "$tree/bin"
    for tool in bash dirname sed grep id; do ln -s "$(command -v "$tool")" "$tree/bin/$tool"; done
    # A compiler that finds no header.
    printf '#!/bin/sh\n[ "$1" = -dumpversion ] && echo 12\n' >"$tree/bin/g++"
    chmod +x "$tree/bin/g++"
    expect 5 'command cmake (cmake)' env PATH="$tree/bin" "$source/scripts/setup"
    expect 5 'this system has no apt-get' env PATH="$tree/bin" "$source/scripts/setup"
    # Debian without the right to install, and without any of the packages.
    for tool in apt-get dpkg-query; do printf '#!/bin/sh\n' >"$tree/bin/$tool"; done
    rm "$tree/bin/id"
    printf '#!/bin/sh\necho 1000\n' >"$tree/bin/id"
    chmod +x "$tree"/bin/{apt-get,dpkg-query,id}
    expect 5 'apt-get install --no-install-recommends' env PATH="$tree/bin" "$source/scripts/setup"
    expect 5 ' cmake ' env PATH="$tree/bin" "$source/scripts/setup"
    # As root everything that is missing is installed in one go, and a failing mirror is tried again.
    printf '#!/bin/sh\necho 0\n' >"$tree/bin/id"
    printf '#!/bin/sh\n' >"$tree/bin/sleep"
    printf '#!/bin/sh\nshift\nexec "$@"\n' >"$tree/bin/env"
    printf '#!/bin/sh\necho "apt-get $*" >>"%s/log"\n' "$tree" >"$tree/bin/apt-get"
    chmod +x "$tree"/bin/{sleep,env}
    expect 0 'setup: installing g++ cmake' /usr/bin/env PATH="$tree/bin" "$source/scripts/setup"
    grep -q 'update' "$tree/log" || fail 'the package lists were not updated'
    grep -q 'install -y .* libdnnl-dev ' "$tree/log" || fail "not installed: $(cat "$tree/log")"
    printf '#!/bin/sh\necho "apt-get $*" >>"%s/log"\nexit 100\n' "$tree" >"$tree/bin/apt-get"
    expect 5 'apt-get install failed (try 3 of 3)' /usr/bin/env PATH="$tree/bin" "$source/scripts/setup"
    ;;
  environment)
    # shellcheck disable=SC2016 # the variables are those of the inner shell
    show='. "$0"; echo "$HOME|$TMPDIR|$CCACHE_BASEDIR|$OMPI_ALLOW_RUN_AS_ROOT$OMPI_MCA_rmaps_base_oversubscribe"'
    home=$source/build/home
    mkdir "$tree/home" "$tree/a directory whose name is too long for a socket"
    cd /
    expect 0 "$tree/home|$tree|$source|11" \
      env HOME="$tree/home" TMPDIR="$tree" bash -c "$show" "$source/scripts/env"
    expect 0 "$home|$tree|" env -u HOME TMPDIR="$tree" bash -c "$show" "$source/scripts/env"
    expect 0 "$home|$tree|" env HOME= TMPDIR="$tree" bash -c "$show" "$source/scripts/env"
    expect 0 "$home|/tmp|" env -u TMPDIR HOME=/nonexistent bash -c "$show" "$source/scripts/env"
    expect 0 "|/tmp|" env HOME="$tree/home" \
      TMPDIR="$tree/a directory whose name is too long for a socket" bash -c "$show" "$source/scripts/env"
    ;;
  *)
    fail "no such case: '${1-}'"
    ;;
esac
