# The Python package: build/python/einlang holds the extension module, the library and links to the Python
# files, so that PYTHONPATH=build/python is enough to use it.

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)

# nanobind comes from PyPI. Where the interpreter does not have it (under `pip install` it has), a virtual
# environment in the build folder gets it, with what the tests of the package need.
set(EIN_PYTHON_ENVIRONMENT ${CMAKE_BINARY_DIR}/environment)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE missing)
if(missing)
  execute_process(COMMAND ${Python_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tools/python_environment.py
    ${EIN_PYTHON_ENVIRONMENT} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${EIN_PYTHON_ENVIRONMENT}/bin/python -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_DIR OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
find_package(nanobind CONFIG REQUIRED)

set(EIN_PACKAGE ${CMAKE_BINARY_DIR}/python/einlang)
file(GLOB binding_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/*.cc)
# STABLE_ABI: one module serves every CPython from 3.12 on; 3.11 gets one of its own.
nanobind_add_module(_native STABLE_ABI NB_STATIC NOMINSIZE NB_SUPPRESS_WARNINGS ${binding_sources})
target_link_libraries(_native PRIVATE einlang)
set_target_properties(_native PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${EIN_PACKAGE}
  BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
add_custom_command(TARGET _native POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink
  $<TARGET_FILE:einlang> ${EIN_PACKAGE}/$<TARGET_SONAME_FILE_NAME:einlang>)

file(GLOB package_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/einlang/*.py
  ${CMAKE_SOURCE_DIR}/python/einlang/*.pyi ${CMAKE_SOURCE_DIR}/python/einlang/py.typed)
file(MAKE_DIRECTORY ${EIN_PACKAGE})
foreach(file ${package_files})
  get_filename_component(name ${file} NAME)
  file(CREATE_LINK ${file} ${EIN_PACKAGE}/${name} SYMBOLIC)
endforeach()
