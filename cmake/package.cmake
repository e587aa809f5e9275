# cmake --install, and find_package(trifactor) afterwards.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/trifactor)

if(TRIFACTOR_QUICK_KERNELS)
  install(CODE "message(WARNING \"kernels were compiled without most optimizations, for tests: make install compiles them again\")")
endif()
install(TARGETS trifactor EXPORT trifactorTargets)
add_custom_target(installed_files)   # what `make install` builds
add_dependencies(installed_files trifactor)
if(TARGET trifactor_lapack)
  set_target_properties(trifactor_lapack PROPERTIES EXPORT_NAME lapack)
  install(TARGETS trifactor_lapack EXPORT trifactorTargets)
  add_dependencies(installed_files trifactor_lapack)
endif()
install(DIRECTORY include/trifactor DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN *.h PATTERN *.hpp PATTERN testing.hpp EXCLUDE PATTERN inspect.hpp EXCLUDE)
install(FILES include/trifactor.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES examples/fortran/trifactor.f90 DESTINATION ${CMAKE_INSTALL_DATADIR}/trifactor)   # compiled by its user
install(FILES ${PROJECT_BINARY_DIR}/generated/trifactor/config.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trifactor)
install(EXPORT trifactorTargets NAMESPACE trifactor:: DESTINATION ${package_dir})
if(TRIFACTOR_TOOLS)
  install(TARGETS trifactor_program)
  add_dependencies(installed_files trifactor_program)
endif()

configure_package_config_file(cmake/trifactorConfig.cmake.in ${PROJECT_BINARY_DIR}/trifactorConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/trifactorConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/trifactorConfig.cmake ${PROJECT_BINARY_DIR}/trifactorConfigVersion.cmake
        DESTINATION ${package_dir})

# trifactor.pc, for pkg-config. Its paths follow the file, so an installation may be moved.
if(BUILD_SHARED_LIBS)
  file(RELATIVE_PATH from_pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  configure_file(cmake/trifactor.pc.in ${PROJECT_BINARY_DIR}/trifactor.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/trifactor.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
