# Warnings are errors everywhere; position-independent code without -march or -ffast-math, because
# one binary serves every node.
add_library(ezpz_flags INTERFACE)
target_compile_options(ezpz_flags INTERFACE -Wall -Wextra -Wpedantic -Werror -fPIE -fno-plt)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports "literal" + std::string as overlapping copies (GCC PR 105329), a false alarm.
  target_compile_options(ezpz_flags INTERFACE -Wno-restrict)
endif()
target_compile_definitions(ezpz_flags INTERFACE FMT_HEADER_ONLY=1)
target_include_directories(ezpz_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
if(EZPZ_SANITIZE)
  target_compile_options(ezpz_flags INTERFACE
    -fsanitize=${EZPZ_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(ezpz_flags INTERFACE -fsanitize=${EZPZ_SANITIZE})
endif()

# Makes TARGET run on a bare node: static PIE, and the linker's "requires at runtime the shared
# libraries" (getaddrinfo, getpwnam, dlopen, ...) is an error, because such a call aborts on nodes
# whose name service is not the build machine's.
function(ezpz_standalone target)
  if(EZPZ_STATIC AND NOT EZPZ_SANITIZE)
    target_link_options(${target} PRIVATE -static-pie -Wl,--fatal-warnings -Wl,--gc-sections)
  endif()
endfunction()
