# The built-in patterns once more, as they are after parsing: see src/evidence/grammar_image.h.
file(GLOB patterns CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/patterns/*.toml)
add_executable(embed_grammar ${CMAKE_SOURCE_DIR}/tools/embed_grammar.cc
               ${CMAKE_SOURCE_DIR}/src/evidence/grammar_file.cc
               ${CMAKE_SOURCE_DIR}/src/evidence/grammar_image.cc)
target_link_libraries(embed_grammar PRIVATE ezpz_base)
set(images ${CMAKE_BINARY_DIR}/embedded/grammar_images.cc)
add_custom_command(
  OUTPUT ${images}
  COMMAND embed_grammar ${images} ${patterns}
  DEPENDS embed_grammar ${patterns}
  VERBATIM)
target_sources(ezpz_evidence PRIVATE ${images})
