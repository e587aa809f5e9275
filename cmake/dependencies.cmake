# OpenBLAS, LAPACKE, OpenMP, METIS and AMD. Distributions keep each flavour of OpenBLAS in a folder of its own; the OpenMP flavour
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
find_path(METIS_INCLUDE_DIR metis.h)
find_library(METIS_LIBRARY NAMES metis)
find_path(AMD_INCLUDE_DIR amd.h PATH_SUFFIXES suitesparse)
find_library(AMD_LIBRARY NAMES amd)
foreach(found METIS_INCLUDE_DIR METIS_LIBRARY AMD_INCLUDE_DIR AMD_LIBRARY)
  mark_as_advanced(${found})
  if(NOT ${found})
    message(FATAL_ERROR "${found} was not found: install METIS and SuiteSparse's AMD (scripts/install_packages does), "
                        "or set -D${found}=...")
  endif()
endforeach()

# For tests and tools, which compare with LAPACK itself.
add_library(lapack INTERFACE)
target_include_directories(lapack SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR} ${LAPACKE_INCLUDE_DIR})
target_link_libraries(lapack INTERFACE ${LAPACKE_LIBRARY} ${OPENBLAS_LIBRARY} OpenMP::OpenMP_CXX)
