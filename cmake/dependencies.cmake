# OpenBLAS, LAPACKE, OpenMP, AMD, COLAMD and SuperLU, and METIS for tests. Distributions keep each flavour of OpenBLAS in a folder of its own; the OpenMP flavour
# comes first, since it runs serially inside an OpenMP loop by itself.
find_package(OpenMP REQUIRED COMPONENTS CXX)

set(flavours openblas-openmp openblas openblas-pthread openblas-serial)
find_path(OPENBLAS_INCLUDE_DIR openblas_config.h PATH_SUFFIXES ${flavours})
find_library(OPENBLAS_LIBRARY NAMES openblas openblaso PATH_SUFFIXES ${flavours})
find_path(LAPACKE_INCLUDE_DIR lapacke.h PATH_SUFFIXES ${flavours} lapacke)
find_library(LAPACKE_LIBRARY NAMES lapacke)
if(NOT LAPACKE_LIBRARY)
  set(LAPACKE_LIBRARY ${OPENBLAS_LIBRARY})   # an OpenBLAS built with LAPACKE inside
endif()
foreach(found OPENBLAS_INCLUDE_DIR OPENBLAS_LIBRARY LAPACKE_INCLUDE_DIR)
  mark_as_advanced(${found})
  if(NOT ${found})
    message(FATAL_ERROR "${found} was not found: install OpenBLAS and LAPACKE (scripts/install_packages does), "
                        "or set -D${found}=...")
  endif()
endforeach()

# Orderings of sparse matrices.
find_path(AMD_INCLUDE_DIR amd.h PATH_SUFFIXES suitesparse)
find_library(AMD_LIBRARY NAMES amd)
find_path(COLAMD_INCLUDE_DIR colamd.h PATH_SUFFIXES suitesparse)
find_library(COLAMD_LIBRARY NAMES colamd)
# The kernels of sparse LU.
find_path(SUPERLU_INCLUDE_DIR slu_ddefs.h PATH_SUFFIXES superlu SuperLU)
find_library(SUPERLU_LIBRARY NAMES superlu)
set(of_tests)
if(TRIFACTOR_TESTS)   # which compare the fill of nested dissection with that of METIS
  find_path(METIS_INCLUDE_DIR metis.h)
  find_library(METIS_LIBRARY NAMES metis)
  set(of_tests METIS_INCLUDE_DIR METIS_LIBRARY)
endif()
foreach(found AMD_INCLUDE_DIR AMD_LIBRARY COLAMD_INCLUDE_DIR COLAMD_LIBRARY SUPERLU_INCLUDE_DIR SUPERLU_LIBRARY
              ${of_tests})
  mark_as_advanced(${found})
  if(NOT ${found})
    message(FATAL_ERROR "${found} was not found: install SuiteSparse's AMD and COLAMD, SuperLU, and for tests METIS "
                        "(scripts/install_packages does), or set -D${found}=...")
  endif()
endforeach()

# For tests and tools, which compare with LAPACK itself.
add_library(lapack INTERFACE)
target_include_directories(lapack SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR} ${LAPACKE_INCLUDE_DIR})
target_link_libraries(lapack INTERFACE ${LAPACKE_LIBRARY} ${OPENBLAS_LIBRARY} OpenMP::OpenMP_CXX)
