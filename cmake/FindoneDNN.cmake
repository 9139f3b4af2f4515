# oneDNN as target oneDNN::dnnl. Debian's own package file asks for OpenCL's headers, which annulus
# does not need; so the header and the library are found here. Set oneDNN_ROOT for another version.
find_path(oneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(oneDNN_LIBRARY NAMES dnnl)
if(oneDNN_INCLUDE_DIR)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h line
      REGEX "^#define DNNL_VERSION_${part} ")
    string(REGEX MATCH "[0-9]+" oneDNN_${part} "${line}")
  endforeach()
  set(oneDNN_VERSION ${oneDNN_MAJOR}.${oneDNN_MINOR}.${oneDNN_PATCH})
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(oneDNN
  REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR VERSION_VAR oneDNN_VERSION)
if(oneDNN_FOUND AND NOT TARGET oneDNN::dnnl)
  add_library(oneDNN::dnnl UNKNOWN IMPORTED)
  set_target_properties(oneDNN::dnnl PROPERTIES
    IMPORTED_LOCATION ${oneDNN_LIBRARY}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${oneDNN_INCLUDE_DIR})
  target_include_directories(oneDNN::dnnl SYSTEM INTERFACE ${oneDNN_INCLUDE_DIR})
endif()
