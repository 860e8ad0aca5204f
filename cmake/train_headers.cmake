# The trainer's files that include PyTorch are C++17 (its 1.13 headers are not C++20), so the headers
# of train/'s other folders must be C++17 too. Compiling them all as such is the proof.
file(GLOB headers CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/src/train/weights/*.h
  ${CMAKE_SOURCE_DIR}/src/train/checkpoint/*.h
  ${CMAKE_SOURCE_DIR}/src/train/data/*.h)
list(TRANSFORM headers REPLACE "^${CMAKE_SOURCE_DIR}/src/(.*)$" "#include \"\\1\"")
list(JOIN headers "\n" includes)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/train_headers.cc CONTENT "${includes}\n" @ONLY)
add_library(train_headers OBJECT ${CMAKE_BINARY_DIR}/train_headers.cc)
set_target_properties(train_headers PROPERTIES CXX_STANDARD 17)
target_link_libraries(train_headers PRIVATE ezpz_flags)
