# One static library a folder, sources listed by hand; one test binary a folder.

# cairn_library(name SOURCES a.cc ... LINKS targets ...)
function(cairn_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${ARG_LINKS} PRIVATE cairn_warnings)
endfunction()

# Links an allocator that keeps its memory: glibc's trims the heap under gRPC's buffers and faults it in again, at several times
# the CPU. Executables only; sanitizers bring their own.
function(cairn_allocator name)
  if(NOT CAIRN_SANITIZE)
    target_link_libraries(${name} PRIVATE -Wl,--no-as-needed tcmalloc_minimal -Wl,--as-needed)
  endif()
endfunction()

# cairn_test(name LABEL unit|sim|threads|cluster|process TIMEOUT seconds [LONG] SOURCES ... LINKS ...)
# One CTest entry for each GoogleTest case. Tests run under ctest -j, so they may not share files or ports.
# The target cairn_tests_<label> builds what carries the label. LONG: it grows with ./dev test --long, which says how long it may take;
# by itself the test has no timeout, as ctest's own flag does not override one.
function(cairn_test name)
  cmake_parse_arguments(ARG "LONG" "LABEL;TIMEOUT" "SOURCES;LINKS" ${ARGN})
  if(ARG_LONG)
    set(timeout "")
  elseif(ARG_TIMEOUT)
    set(timeout TIMEOUT ${ARG_TIMEOUT})
  else()
    set(timeout TIMEOUT 60)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gmock GTest::gtest_main cairn_warnings)
  if(NOT TARGET cairn_tests_${ARG_LABEL})
    add_custom_target(cairn_tests_${ARG_LABEL})
  endif()
  add_dependencies(cairn_tests_${ARG_LABEL} ${name})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS ${ARG_LABEL} ${timeout})
endfunction()
