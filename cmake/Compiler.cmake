# Flags that every target of the project gets: warnings as errors, sanitizers, the instruction-set
# baseline. Results must not depend on the instruction set that the compiler was free to choose, so
# contraction into fused multiply-add is off everywhere.
add_library(annulus_flags INTERFACE)
target_compile_options(annulus_flags INTERFACE
  -Wall -Wextra -Werror -Wnon-virtual-dtor -ffp-contract=off -fno-math-errno)
# GCC 12 reports moved-from std::variant members as maybe uninitialised (its bug 105562); clang-tidy
# checks the same without that fault.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(annulus_flags INTERFACE -Wno-maybe-uninitialized)
endif()

# Our own kernels are bound by memory: AVX2 is enough for them (oneDNN picks its own code at run
# time). The program checks at start that the processor has it.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(ANNULUS_MARCH "x86-64-v3" CACHE STRING "instruction-set baseline (-march)")
  target_compile_options(annulus_flags INTERFACE -march=${ANNULUS_MARCH})
endif()
# With optimisation only: GCC's fixed-bounds loops are vectorised from -O3 on.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")

if(ANNULUS_SANITIZER STREQUAL "address")
  target_compile_options(annulus_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(annulus_flags INTERFACE -fsanitize=address,undefined)
elseif(ANNULUS_SANITIZER STREQUAL "thread")
  target_compile_options(annulus_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(annulus_flags INTERFACE -fsanitize=thread)
elseif(NOT ANNULUS_SANITIZER STREQUAL "none")
  message(FATAL_ERROR "ANNULUS_SANITIZER is none, address or thread, not '${ANNULUS_SANITIZER}'")
endif()
