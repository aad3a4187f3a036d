# Language level, warnings, sanitizers and the compiler cache: the same for every target of ours.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CAIRN_SANITIZE "" CACHE STRING "Sanitizers to build with: empty, address,undefined or thread")
set(CAIRN_FUZZ OFF CACHE BOOL "Build the fuzz targets (needs clang)")

find_program(CAIRN_CCACHE ccache)
if(CAIRN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # base_dir and the prefix map below make objects equal across clone folders, so a fresh clone hits the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${CAIRN_CCACHE}")
endif()
add_compile_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.")

if(CAIRN_SANITIZE)
  add_compile_options("-fsanitize=${CAIRN_SANITIZE}" -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${CAIRN_SANITIZE}")
  if(CAIRN_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  if(CAIRN_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)  # Asio's fences; see docs/decisions.
    # For whatever includes protobuf; see the file.
    add_compile_options(-include "${CMAKE_SOURCE_DIR}/cmake/protobuf_layout.h")
  endif()
endif()

# Usage: target_link_libraries(x PRIVATE cairn_warnings). Not global: generated code is not ours to warn about.
add_library(cairn_warnings INTERFACE)
target_compile_options(cairn_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wconversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT (CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_CXX_FLAGS_DEBUG MATCHES "-O0"))
  # Asio's coroutine frames have their own operator new and delete; when g++ inlines one and not the other it takes them for a mismatch.
  target_compile_options(cairn_warnings INTERFACE -Wno-mismatched-new-delete)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(cairn_warnings INTERFACE -Wthread-safety -Wthread-safety-beta)
endif()
