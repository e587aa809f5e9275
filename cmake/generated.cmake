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

# One .cu for each operation and scalar. An operation is a .cuh in src/cuda/kernels that defines
# TRIFACTOR_INSTANTIATE_KERNELS(T); the other headers there are what operations share. A .cu takes three seconds for its
# headers alone, so operations that are short to compile have one for all scalars, and others one for both of a kind.
set(short_operations entries fronts lu lu_resident lu_rows trsm update)
set(paired_operations inverted sweep)
if(TRIFACTOR_HAS_CUDA)
  file(GLOB kernel_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/kernels/*.cuh)
  set(TRIFACTOR_KERNEL_SOURCES)
  # kernel_source(name scalar...): kernels/name.cu, with the operation OP for these scalars.
  macro(kernel_source name)
    set(INSTANCES)
    foreach(scalar ${ARGN})
      list(APPEND INSTANCES "TRIFACTOR_INSTANTIATE_KERNELS(${INNER_SCALAR_${scalar}})")
    endforeach()
    list(JOIN INSTANCES "\n" INSTANCES)
    configure_file(cmake/kernel.cu.in ${generated}/kernels/${name}.cu @ONLY)
    list(APPEND TRIFACTOR_KERNEL_SOURCES ${generated}/kernels/${name}.cu)
  endmacro()
  foreach(header ${kernel_headers})
    file(STRINGS ${header} instantiates REGEX "^#define TRIFACTOR_INSTANTIATE_KERNELS")
    if(NOT instantiates)
      continue()
    endif()
    get_filename_component(OP ${header} NAME_WE)
    if(OP IN_LIST short_operations)
      kernel_source(${OP} ${TRIFACTOR_SCALAR_LIST})
    elseif(OP IN_LIST paired_operations)
      foreach(kind f c)
        set(scalars ${TRIFACTOR_SCALAR_LIST})
        list(FILTER scalars INCLUDE REGEX "^${kind}")
        if(scalars)
          kernel_source(${OP}_${kind} ${scalars})
        endif()
      endforeach()
    else()
      foreach(scalar ${TRIFACTOR_SCALAR_LIST})
        kernel_source(${OP}_${scalar} ${scalar})
      endforeach()
    endif()
  endforeach()
endif()
