# Shortens the build of llama.cpp. CMake includes this file after each `project()` of its own.
#
# Most of the build are some 190 files that only put graphs together, a model architecture each. They get little
# optimisation, and are compiled 32 at a time instead of 16. What computes (the ggml libraries) is left as it is. With
# yet larger batches, names of two files are in each other's way.
if(PROJECT_NAME STREQUAL "llama.cpp")
  # Tools around the library. The build script always asks for them, and nothing of them is linked.
  set(LLAMA_BUILD_COMMON OFF CACHE BOOL "" FORCE)
  function(probity_quicken)
    if(TARGET llama)
      set_target_properties(llama PROPERTIES UNITY_BUILD_BATCH_SIZE 32)
      if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
        target_compile_options(llama PRIVATE -O1)
      endif()
    endif()
    # An HTTP client, codecs and the like, which only its own programs use. What the library needs of them is built.
    set_property(DIRECTORY "${CMAKE_SOURCE_DIR}/vendor" PROPERTY EXCLUDE_FROM_ALL ON)
  endfunction()
  cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL probity_quicken)
endif()
