# ezpz_embed(machines out): compiles every machines/*.toml into the binary, as
# ezpz::embedded::machines() (declared in base/embedded.h); a/b as a_b().
function(ezpz_embed folder out)
  string(REPLACE "/" "_" name ${folder})
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.toml)
  set(generated ${CMAKE_BINARY_DIR}/embedded/${name}.cc)
  add_custom_command(
    OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${name} -DOUT=${generated} "-DFILES=${files}"
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    VERBATIM)
  set(${out} ${generated} PARENT_SCOPE)
endfunction()
