# These files of src/host are compiled once for each instruction set, TRIFACTOR_ISA naming it. A *_dispatch.cpp beside
# each picks one at run time.
set(per_instruction_set src/host/interleaved.cpp src/host/interleaved_lu.cpp src/host/front.cpp)

set(INSTRUCTION_SETS baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND NOT TRIFACTOR_SANITIZE)   # which see the same lines in each
  list(APPEND INSTRUCTION_SETS avx2 avx512)
  # For tests on this machine: what it never takes is left out, or hardly optimized.
  if(TRIFACTOR_QUICK_KERNELS AND EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo flags REGEX "^flags.* avx512f " LIMIT_COUNT 1)
    if(flags MATCHES " avx512dq( |$)" AND flags MATCHES " avx512vl( |$)")
      list(REMOVE_ITEM INSTRUCTION_SETS avx2)
      set(optimization_baseline -O1)
    endif()
  endif()
  foreach(isa ${INSTRUCTION_SETS})
    string(TOUPPER ${isa} isa)
    target_compile_definitions(trifactor PRIVATE TRIFACTOR_HAS_${isa}=1)
  endforeach()
endif()
set(FLAGS_baseline)
set(FLAGS_avx2 -mavx2 -mfma)
set(FLAGS_avx512 -mavx512f -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512)

# Sparse tests with sanitizers take a third less time, for one second more here; of the other files -Og is as good.
set_source_files_properties(src/host/front.cpp PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Debug>:-O2>)
set(TRIFACTOR_INSTRUCTION_SET_OBJECTS)
foreach(isa ${INSTRUCTION_SETS})
  add_library(host_${isa} OBJECT ${per_instruction_set})
  target_include_directories(host_${isa}
    PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
  target_compile_features(host_${isa} PRIVATE cxx_std_20)
  target_compile_definitions(host_${isa} PRIVATE TRIFACTOR_ISA=${isa})
  target_compile_options(host_${isa}
    PRIVATE $<IF:$<CONFIG:Debug>,-Og,-O3> ${optimization_${isa}} -fno-math-errno -ffp-contract=fast ${FLAGS_${isa}})
  set_target_properties(host_${isa} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  list(APPEND TRIFACTOR_INSTRUCTION_SET_OBJECTS $<TARGET_OBJECTS:host_${isa}>)
endforeach()
