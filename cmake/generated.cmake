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
          -P ${PROJECT_SOURCE_DIR}/cmake/commit.cmake
  BYPRODUCTS ${generated}/commit.hpp COMMENT "" VERBATIM)

# One .cu for each operation and scalar. An operation is a .cuh in src/cuda/batched, single, sparse or entries that defines
# TRIFACTOR_INSTANTIATE_KERNELS(T); the other headers are what operations share. A .cu takes four seconds for its
# headers alone, so the shortest operations to compile are one together, short ones have one for all scalars, and others one
# for both of a kind.
set(shortest_operations entries/entries entries/fronts sparse/small_fronts single/lu single/lu_left batched/lu_shared
  batched/gemm single/lu_beside batched/lu_trailing)
set(short_operations batched/cholesky_solve batched/lu_registers batched/trsm single/lu_cluster single/trsm_inverted
  single/trsm_sweep)
set(paired_operations sparse/front_solve)
if(TRIFACTOR_HAS_CUDA)
  set(cuda_folder ${PROJECT_SOURCE_DIR}/src/cuda)
  file(GLOB kernel_headers RELATIVE ${cuda_folder} CONFIGURE_DEPENDS
    ${cuda_folder}/batched/*.cuh ${cuda_folder}/single/*.cuh ${cuda_folder}/sparse/*.cuh ${cuda_folder}/entries/*.cuh)
  set(TRIFACTOR_KERNEL_SOURCES)
  # kernel_source(name OPERATIONS operation... SCALARS scalar...): kernels/name.cu, with these operations for these scalars.
  function(kernel_source name)
    cmake_parse_arguments(PARSE_ARGV 1 source "" "" "OPERATIONS;SCALARS")
    set(text)
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
  kernel_source(shortest OPERATIONS ${shortest_operations} SCALARS ${TRIFACTOR_SCALAR_LIST})
  foreach(header ${kernel_headers})
    file(STRINGS ${cuda_folder}/${header} instantiates REGEX "^#define TRIFACTOR_INSTANTIATE_KERNELS")
    string(REPLACE ".cuh" "" operation ${header})
    if(NOT instantiates OR operation IN_LIST shortest_operations)
      continue()
    endif()
    get_filename_component(name ${operation} NAME)
    if(operation IN_LIST short_operations)
      kernel_source(${name} OPERATIONS ${operation} SCALARS ${TRIFACTOR_SCALAR_LIST})
    elseif(operation IN_LIST paired_operations)
      foreach(kind f c)
        set(scalars ${TRIFACTOR_SCALAR_LIST})
        list(FILTER scalars INCLUDE REGEX "^${kind}")
        if(scalars)
          kernel_source(${name}_${kind} OPERATIONS ${operation} SCALARS ${scalars})
        endif()
      endforeach()
    else()
      foreach(scalar ${TRIFACTOR_SCALAR_LIST})
        kernel_source(${name}_${scalar} OPERATIONS ${operation} SCALARS ${scalar})
      endforeach()
    endif()
  endforeach()
endif()
