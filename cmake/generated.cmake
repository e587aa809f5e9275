# Everything that is written into build/generated.
set(generated ${PROJECT_BINARY_DIR}/generated)

configure_file(include/trifactor/config.hpp.in ${generated}/trifactor/config.hpp)

# Tuning rows become strings in the library; see src/tuning/embedded.hpp.
file(GLOB tuning_files RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tuning/*.txt)
set(TRIFACTOR_TUNING_ROWS ${generated}/tuning_rows.cpp)
list(JOIN tuning_files "," files)
list(TRANSFORM tuning_files PREPEND ${PROJECT_SOURCE_DIR}/)
add_custom_command(
  OUTPUT ${TRIFACTOR_TUNING_ROWS}
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DFILES=${files} -DOUTPUT=${TRIFACTOR_TUNING_ROWS}
          -P ${PROJECT_SOURCE_DIR}/cmake/embed_tuning.cmake
  DEPENDS ${tuning_files} ${PROJECT_SOURCE_DIR}/cmake/embed_tuning.cmake
  COMMENT "Embedding tuning rows" VERBATIM)

# commit.hpp, for the tools: looked up at every build, written only when it changes.
add_custom_target(commit_header
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${generated}/commit.hpp -DCOMMIT=${TRIFACTOR_COMMIT}
          -DQUICK=${TRIFACTOR_QUICK_KERNELS} -P ${PROJECT_SOURCE_DIR}/cmake/commit.cmake
  BYPRODUCTS ${generated}/commit.hpp COMMENT "" VERBATIM)

# Few .cu files: each takes five seconds for its headers alone. An operation is a .cuh in src/cuda/batched, single, sparse or
# entries that defines TRIFACTOR_INSTANTIATE_KERNELS(T); the other headers are what operations share. Operations that are short
# to compile are in one of these files, for all scalars. Each of the others has a file for the real scalars and one for the
# complex ones.
set(shared_files shortest lu trsm cholesky_solve trsm_inverted)
set(shortest_operations entries/entries entries/fronts sparse/small_fronts single/lu single/lu_left single/lu_tall
  batched/lu_shared batched/gemm single/lu_beside batched/lu_trailing)
set(lu_operations batched/lu_registers single/lu_team)
set(trsm_operations batched/trsm single/trsm_sweep)
set(cholesky_solve_operations batched/cholesky_solve)
set(trsm_inverted_operations single/trsm_inverted)
if(TRIFACTOR_HAS_CUDA)
  set(cuda_folder ${PROJECT_SOURCE_DIR}/src/cuda)
  file(GLOB kernel_headers RELATIVE ${cuda_folder} CONFIGURE_DEPENDS
    ${cuda_folder}/batched/*.cuh ${cuda_folder}/single/*.cuh ${cuda_folder}/sparse/*.cuh ${cuda_folder}/entries/*.cuh)
  set(TRIFACTOR_KERNEL_SOURCES)
  # kernel_source(name OPERATIONS operation... SCALARS scalar... [FILES file...]): kernels/name.cu, with these operations for
  # these scalars, and these .cu files of src/cuda.
  function(kernel_source name)
    cmake_parse_arguments(PARSE_ARGV 1 source "" "" "OPERATIONS;SCALARS;FILES")
    set(text)
    foreach(file ${source_FILES})
      string(APPEND text "#include <cuda/${file}>\n\n")
    endforeach()
    foreach(operation ${source_OPERATIONS})
      string(APPEND text "#include <cuda/${operation}.cuh>\n\n")
      foreach(scalar ${source_SCALARS})
        string(APPEND text "TRIFACTOR_INSTANTIATE_KERNELS(${INNER_SCALAR_${scalar}})\n")
      endforeach()
      string(APPEND text "#undef TRIFACTOR_INSTANTIATE_KERNELS\n")
    endforeach()
    file(CONFIGURE OUTPUT ${generated}/kernels/${name}.cu CONTENT "${text}" @ONLY)
    set(TRIFACTOR_KERNEL_SOURCES ${TRIFACTOR_KERNEL_SOURCES} ${generated}/kernels/${name}.cu PARENT_SCOPE)
  endfunction()
  set(shortest_files entries/permutation.cu)   # kernels without a scalar
  set(shared_operations)
  foreach(name ${shared_files})
    kernel_source(${name} OPERATIONS ${${name}_operations} SCALARS ${TRIFACTOR_SCALAR_LIST} FILES ${${name}_files})
    list(APPEND shared_operations ${${name}_operations})
  endforeach()
  foreach(header ${kernel_headers})
    file(STRINGS ${cuda_folder}/${header} instantiates REGEX "^#define TRIFACTOR_INSTANTIATE_KERNELS")
    string(REPLACE ".cuh" "" operation ${header})
    if(NOT instantiates OR operation IN_LIST shared_operations)
      continue()
    endif()
    get_filename_component(name ${operation} NAME)
    foreach(kind f c)
      set(scalars ${TRIFACTOR_SCALAR_LIST})
      list(FILTER scalars INCLUDE REGEX "^${kind}")
      if(scalars)
        kernel_source(${name}_${kind} OPERATIONS ${operation} SCALARS ${scalars})
      endif()
    endforeach()
  endforeach()
endif()
