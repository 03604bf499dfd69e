# find_package(einlang) gives the target einlang::einlang.
include("${CMAKE_CURRENT_LIST_DIR}/einlang-targets.cmake")
