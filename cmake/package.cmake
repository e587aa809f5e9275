# cmake --install, and find_package(trifactor) afterwards.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/trifactor)

install(TARGETS trifactor EXPORT trifactorTargets)
install(DIRECTORY include/trifactor DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN *.hpp PATTERN testing.hpp EXCLUDE PATTERN inspect.hpp EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/generated/trifactor/config.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trifactor)
install(EXPORT trifactorTargets NAMESPACE trifactor:: DESTINATION ${package_dir})
if(TRIFACTOR_TOOLS)
  install(TARGETS trifactor_program)
endif()

configure_package_config_file(cmake/trifactorConfig.cmake.in ${PROJECT_BINARY_DIR}/trifactorConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/trifactorConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/trifactorConfig.cmake ${PROJECT_BINARY_DIR}/trifactorConfigVersion.cmake
        DESTINATION ${package_dir})
