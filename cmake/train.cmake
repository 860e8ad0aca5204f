# ezpz-train: optional, because it needs libtorch, OpenMP and a BLAS, which ezpz itself must never
# depend on. AUTO builds it where they are found, except under a sanitizer (libtorch is not built for
# one) and with clang 14 (which PyTorch 1.13's headers do not suit).
set_property(CACHE EZPZ_TRAIN PROPERTY STRINGS AUTO ON OFF)
# What libtorch's headers can be compiled as: 17 for 1.13, 17 or 20 for 2.x.
set(EZPZ_TORCH_CXX_STANDARD 17 CACHE STRING "C++ standard of the files that include PyTorch")

set(ezpz_train_wanted ${EZPZ_TRAIN})
if(EZPZ_TRAIN STREQUAL AUTO AND (EZPZ_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU))
  set(ezpz_train_wanted OFF)
endif()
if(NOT ezpz_train_wanted)
  message(STATUS "ezpz-train: not built (EZPZ_TRAIN=${EZPZ_TRAIN})")
  return()
endif()
if(ezpz_train_wanted STREQUAL AUTO)
  find_package(Torch QUIET)
  find_package(OpenMP QUIET COMPONENTS CXX)
else()
  find_package(Torch REQUIRED)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
endif()
find_library(EZPZ_BLAS NAMES blas openblas)
find_path(EZPZ_GLOO_INCLUDE gloo/context.h)
find_path(EZPZ_CBLAS_INCLUDE cblas.h PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE} openblas)
if(NOT Torch_FOUND OR NOT OpenMP_CXX_FOUND OR NOT EZPZ_BLAS OR NOT EZPZ_CBLAS_INCLUDE
   OR NOT EZPZ_GLOO_INCLUDE)
  if(EZPZ_TRAIN STREQUAL ON)
    message(FATAL_ERROR "ezpz-train needs libtorch, the headers of gloo, OpenMP and a BLAS with cblas.h "
      "(tools/setup --train)")
  endif()
  message(STATUS "ezpz-train: not built (libtorch, gloo, OpenMP or BLAS not found; tools/setup --train)")
  return()
endif()

# The arithmetic kernels, once for each instruction set; the widest that the processor has is chosen
# when the program starts.
set(simd_isas baseline)
set(simd_flags_baseline "")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  list(APPEND simd_isas avx2 avx512)
  set(simd_flags_avx2 -march=x86-64-v3)
  set(simd_flags_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
endif()
set(simd_objects)
foreach(isa ${simd_isas})
  add_library(ezpz_simd_${isa} OBJECT ${CMAKE_SOURCE_DIR}/src/train/kernels/simd.cc)
  target_link_libraries(ezpz_simd_${isa} PRIVATE ezpz_flags OpenMP::OpenMP_CXX)
  target_compile_definitions(ezpz_simd_${isa} PRIVATE EZPZ_ISA=${isa})
  target_compile_options(ezpz_simd_${isa} PRIVATE
    -O3 -fno-math-errno -fno-trapping-math ${simd_flags_${isa}})
  list(APPEND simd_objects $<TARGET_OBJECTS:ezpz_simd_${isa}>)
endforeach()

set(kernels ${CMAKE_SOURCE_DIR}/src/train/kernels)
add_library(ezpz_train_kernels STATIC
  ${kernels}/dispatch.cc ${kernels}/gemm.cc ${kernels}/attention.cc ${kernels}/random.cc
  ${simd_objects})
target_include_directories(ezpz_train_kernels SYSTEM PRIVATE ${EZPZ_CBLAS_INCLUDE})
target_link_libraries(ezpz_train_kernels PUBLIC ezpz_flags OpenMP::OpenMP_CXX ${EZPZ_BLAS} dl)

# Files that include PyTorch are C++17; the headers that they share with the others are too.
function(ezpz_train_library name)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;USES" ${ARGN})
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/src/train/)
  add_library(ezpz_train_${name} STATIC ${arg_SOURCES})
  target_link_libraries(ezpz_train_${name} PUBLIC ezpz_flags ${arg_USES} Threads::Threads)
  if(arg_TORCH)
    set_target_properties(ezpz_train_${name} PROPERTIES CXX_STANDARD ${EZPZ_TORCH_CXX_STANDARD})
    target_link_libraries(ezpz_train_${name} PUBLIC torch torch_cpu c10)
  endif()
endfunction()
separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
add_compile_options(${torch_flags})

ezpz_train_library(plain USES ezpz_base ezpz_bench ezpz_rank ezpz_train_kernels ezpz_train_weights
  ezpz_train_checkpoint ezpz_train_data SOURCES
  model/layout.cc optim/schedule.cc parallel/alone.cc parallel/shm.cc
  loop/options.cc loop/place.cc loop/fault.cc loop/data.cc loop/export.cc loop/metrics.cc)
ezpz_train_library(core TORCH USES ezpz_train_plain SOURCES
  model/ops.cc model/adapters.cc model/model.cc parallel/sharded.cc parallel/gloo.cc
  optim/optimizer.cc loop/own_parts.cc loop/base_weights.cc loop/trainer.cc loop/checkpoints.cc
  app/run.cc)
# The headers of c10d hide gloo's part behind this; the library has it.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/train/parallel/gloo.cc PROPERTIES
  COMPILE_DEFINITIONS USE_C10D_GLOO)

add_executable(ezpz-train ${CMAKE_SOURCE_DIR}/src/train/app/main.cc
  ${CMAKE_SOURCE_DIR}/src/train/app/tokenize.cc)
target_link_libraries(ezpz-train PRIVATE ezpz_train_core)
install(TARGETS ezpz-train RUNTIME DESTINATION bin)

if(EZPZ_TESTS)
  find_package(GTest REQUIRED)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/src/train/model/*_test.cc ${CMAKE_SOURCE_DIR}/src/train/optim/*_test.cc
    ${CMAKE_SOURCE_DIR}/src/train/parallel/*_test.cc ${CMAKE_SOURCE_DIR}/src/train/loop/*_test.cc
    ${CMAKE_SOURCE_DIR}/src/train/kernels/*_test.cc)
  add_executable(train_test ${tests})
  set_target_properties(train_test PROPERTIES CXX_STANDARD ${EZPZ_TORCH_CXX_STANDARD})
  target_link_libraries(train_test PRIVATE ezpz_train_core GTest::gtest GTest::gtest_main)
  add_test(NAME train.unit COMMAND train_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(train.unit PROPERTIES TIMEOUT 300)
endif()
