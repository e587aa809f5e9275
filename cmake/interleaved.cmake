# src/host/interleaved.cpp is compiled once for each instruction set, TRIFACTOR_ISA naming it;
# src/host/interleaved_dispatch.cpp picks one at run time.
set(INSTRUCTION_SETS baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND INSTRUCTION_SETS avx2 avx512)
  target_compile_definitions(trifactor PRIVATE TRIFACTOR_HAS_AVX2=1 TRIFACTOR_HAS_AVX512=1)
endif()
set(FLAGS_baseline)
set(FLAGS_avx2 -mavx2 -mfma)
set(FLAGS_avx512 -mavx512f -mavx512dq -mavx512vl -mfma)

set(TRIFACTOR_INTERLEAVED_OBJECTS)
foreach(isa ${INSTRUCTION_SETS})
  add_library(interleaved_${isa} OBJECT src/host/interleaved.cpp)
  target_include_directories(interleaved_${isa}
    PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
  target_compile_features(interleaved_${isa} PRIVATE cxx_std_20)
  target_compile_definitions(interleaved_${isa} PRIVATE TRIFACTOR_ISA=${isa})
  target_compile_options(interleaved_${isa}
    PRIVATE $<IF:$<CONFIG:Debug>,-O1,-O3> -fno-math-errno -ffp-contract=fast ${FLAGS_${isa}})
  target_link_libraries(interleaved_${isa} PRIVATE OpenMP::OpenMP_CXX)
  set_target_properties(interleaved_${isa} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  list(APPEND TRIFACTOR_INTERLEAVED_OBJECTS $<TARGET_OBJECTS:interleaved_${isa}>)
endforeach()
