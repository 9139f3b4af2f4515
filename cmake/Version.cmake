# The build id that `annulus --version` prints: the commit, with a mark where the tree had changes.
execute_process(COMMAND git describe --always --dirty --abbrev=12
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE ANNULUS_BUILD_ID
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE git_result)
if(NOT git_result EQUAL 0)
  set(ANNULUS_BUILD_ID "unknown")
endif()
