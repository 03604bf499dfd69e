# The target `ein_web`: what the playground runs, one WebAssembly module. It has everything up to autodiff, the
# reference evaluator and the language server, and nothing that makes machine code, starts threads or opens files.
# What the sources take for granted and this platform lacks is in src/web/wasm/lacks.cc and cmake/wasm_include.
set(CMAKE_CXX_FLAGS_RELEASE "")  # no NDEBUG: assertions stay on
set(CMAKE_EXECUTABLE_SUFFIX .wasm)

function(wasm_sources out folder)
  file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc ${CMAKE_SOURCE_DIR}/src/${folder}/*/*.cc)
  foreach(name ${ARGN})
    list(REMOVE_ITEM found ${CMAKE_SOURCE_DIR}/src/${folder}/${name}.cc)
  endforeach()
  set(${out} ${${out}} ${found} PARENT_SCOPE)
endfunction()

# What computes values shall be fast; the rest is sent over networks and shall be small.
wasm_sources(fast core)
wasm_sources(sources base deep_stack fork_mutex)
foreach(folder syntax sema autodiff optimise ide web)
  wasm_sources(sources ${folder})
endforeach()
wasm_sources(sources driver build build_header cache gradcheck gradcheck_compare gradcheck_evaluate gradcheck_program
  gradcheck_rules rule_programs bench agree state streams work doc_examples ranks rank_plan)
wasm_sources(sources lsp command serve transport disk)
# Of the runtime: tensors, and what programs compute and show.
foreach(name csv_options effect factor factor_plain file_names formula integers members monitor random show sink tensor)
  list(APPEND fast ${CMAKE_SOURCE_DIR}/src/runtime/${name}.cc)
endforeach()

file(GLOB_RECURSE library_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/stdlib/*.ein)
set(generated ${CMAKE_BINARY_DIR}/generated)
add_custom_command(OUTPUT ${generated}/stdlib.inc
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_SOURCE_DIR}/stdlib -DPATTERN=*.ein -DNAMES=PATH
    -DOUT=${generated}/stdlib.inc -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${library_files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)

file(GLOB alone ${CMAKE_SOURCE_DIR}/src/web/wasm/*.cc)
set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)

add_library(ein_web_fast OBJECT ${fast})
target_compile_options(ein_web_fast PRIVATE -O2)
add_executable(ein_web ${sources} ${generated}/stdlib.inc)
target_compile_options(ein_web PRIVATE -Oz)
target_link_libraries(ein_web PRIVATE ein_web_fast)
foreach(target ein_web_fast ein_web)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  target_precompile_headers(${target} PRIVATE <algorithm> <cstdint> <functional> <map> <memory> <optional> <set>
    <string> <string_view> <unordered_map> <unordered_set> <utility> <variant> <vector> <fmt/format.h>)
  target_include_directories(${target} BEFORE PRIVATE ${CMAKE_SOURCE_DIR}/cmake/wasm_include)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${generated})
  # Without the instantiations of libc++, which is built without exceptions: an index out of range must be one.
  target_compile_definitions(${target} PRIVATE FMT_HEADER_ONLY EIN_VERSION="${PROJECT_VERSION}" _LIBCPP_DISABLE_EXTERN_TEMPLATE)
  target_compile_options(${target} PRIVATE -fwasm-exceptions -ffp-contract=off -ffunction-sections -fdata-sections
    -mbulk-memory -mnontrapping-fptoint -msign-ext)
endforeach()
# The stack stands below everything else: what nests too deeply is a fault at once, and never overwrites data.
target_link_options(ein_web PRIVATE -fwasm-exceptions -mexec-model=reactor -Wl,--gc-sections -Wl,--strip-all
  -Wl,--stack-first -Wl,-z,stack-size=67108864 -Wl,--max-memory=536870912)
