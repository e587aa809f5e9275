# Build type, language standard, warnings, sanitizers and ccache.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo" FORCE)
endif()

# Targets ask for cxx_std_20. CMAKE_CXX_STANDARD would count for CUDA too, and CMake 3.25 does not know that nvcc has
# C++20: there the flag is given by hand.
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(werror_cxx "$<$<BOOL:${TRIFACTOR_WERROR}>:-Werror>")
set(werror_cuda "$<$<BOOL:${TRIFACTOR_WERROR}>:-Xcompiler=-Werror;-Werror=all-warnings>")
add_compile_options(
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wformat-security;${werror_cxx}>"
  # Line numbers are for profilers. They change no kernel, but they are two thirds of a cubin and a sixth of the time to make it.
  "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;$<$<CONFIG:RelWithDebInfo>:-lineinfo>;-Xcompiler=-Wall,-Wextra;${werror_cuda}>"
  # Device code in a fifth of the bytes; it is unpacked when a kernel is first loaded. --compress-mode=size makes it a seventh,
  # and takes 45 CPU s for all kernels instead of 2.
  "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xfatbin=-compress-all>")

if(TRIFACTOR_SANITIZE)
  set(sanitizers -fsanitize=${TRIFACTOR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # These checks are a seventh of the time to build, so they are left to make test-all. The address sanitizer sees accesses
  # through such pointers.
  if(NOT TRIFACTOR_TEST_ALL)
    list(APPEND sanitizers -fno-sanitize=null,object-size,pointer-overflow)
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${sanitizers}>")
  add_link_options(-fsanitize=${TRIFACTOR_SANITIZE})
  # For tests and the program, which divide no memory by hand: without the checks of pointers that the address sanitizer makes
  # as well, and those of alignment and of virtual tables. They are a quarter of the time to compile. With TRIFACTOR_TEST_ALL the
  # library has them all.
  set(fewer_checks -fno-sanitize=null,object-size,alignment,vptr)
endif()

# unity_group(target name source...): these files of the target are compiled as one. Headers are read and templates are
# instantiated once, which is much of the time of short files: 100 core seconds less in a build. So a name in an unnamed
# namespace is used once in a group, and a macro of a .cpp ends with #undef.
function(unity_group target name)
  if(TRIFACTOR_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${name})
    # GNU takes the unnamed namespace of a file that is included for a header's.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# calling_group(target name source...): the same for files that check, choose and call, and compute nothing themselves. In
# Release they have -O1, in half the time of -O3.
function(calling_group target name)
  unity_group(${target} ${name} ${ARGN})
  set(files ${ARGN})
  if(TRIFACTOR_UNITY)   # options of a file would keep it out of its group, so the group's own file has them
    set(files ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/Unity/unity_${name}_cxx.cxx)
  endif()
  set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)
endfunction()

find_program(CCACHE ccache)
mark_as_advanced(CCACHE)
if(CCACHE)
  foreach(language CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      # with precompiled headers, which it keeps to itself unless it is told that their macros do not matter
      set(CMAKE_${language}_COMPILER_LAUNCHER
          ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
    endif()
  endforeach()
endif()
