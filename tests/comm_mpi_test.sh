#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs comm_mpi_tests (its path comes first) under mpirun and checks how it ends:
#   comm_mpi_test.sh PROGRAM CASE [RANKS]
set -euo pipefail
program=$1 case=$2 ranks=${3:-2}
tests=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$tests/../scripts/env"
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# MPI's libraries keep memory to the end of the process, and are not built for the sanitizers.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
export TSAN_OPTIONS="${TSAN_OPTIONS:-}:ignore_noninstrumented_modules=1"

# expect CODE TEXT COMMAND...: the command ends with the code, and its output has the text.
expect() {
  local code=0 wanted=$1 text=$2
  shift 2
  timeout -k 5 60 "$@" >"$output" 2>&1 || code=$?
  cat "$output"
  if [ "$code" != "$wanted" ]; then
    echo "exit code $code, not $wanted: $*"
    exit 1
  fi
  grep -q -- "$text" "$output" || { echo "no '$text' in the output"; exit 1; }
}

mpi() { expect "$1" "$2" mpirun -n "$ranks" "$program" "$3"; }

on_two_hosts() {
  if "$tests/../scripts/hosts" check; then
    echo "two hosts of scripts/hosts"
    export ANNULUS_HOSTS=test$$
    trap 'rm -f "$output"; "$tests/../scripts/hosts" down' EXIT
    "$tests/../scripts/hosts" up 2
    local map=ppr:$(((ranks + 1) / 2)):node
    expect 0 "ok: $ranks ranks on 2 nodes: h0 h1" \
      "$tests/../scripts/hosts" mpirun -n "$ranks" --map-by "$map" "$program" work
  else
    echo "namespaces are not permitted: two pretended nodes (ANNULUS_NODES=2)"
    ANNULUS_NODES=2 mpi 0 "ok: $ranks ranks on 2 nodes" work
  fi
}

case $case in
  work) mpi 0 "ok: $ranks ranks on 1 nodes" work ;;
  pretended) ANNULUS_NODES=2 mpi 0 "ok: $ranks ranks on 2 nodes" work ;;
  hosts) on_two_hosts ;;
  lost) mpi 7 "gradient sum of bucket 0: no answer from rank $((ranks - 1)) (" lost ;;
  lost_pretended)
    ANNULUS_NODES=$ranks mpi 7 "barrier: no answer from rank $((ranks - 1)) (" lost_in_barrier ;;
  abort) mpi 7 "" abort ;;
  abort_256) mpi 1 "" abort_256 ;;
  fail) mpi 3 "only one rank sees this" fail ;;
  fail_together) mpi 4 "\[rank $((ranks - 1)) on .*\] all ranks see this" fail_together ;;
  memory) mpi 5 "expected 1125899906846.* bytes, found [0-9]* bytes available" memory ;;
  alone) expect 0 "ok: 1 ranks on 1 nodes" "$program" alone ;;
  mismatch)
    expect 5 "(PMI_SIZE) and MPI disagree.*expected 3 ranks, found 1" \
      env PMI_RANK=0 PMI_SIZE=3 "$program" work ;;
  *) echo "no case $case"; exit 2 ;;
esac
