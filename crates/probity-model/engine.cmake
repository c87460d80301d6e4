# Builds llama.cpp in a third of the time. CMake includes this file after each `project()` of its own.
#
# Two thirds of the build are some 190 files that only put graphs together, a model architecture each. They are
# compiled 32 at a time, since most of what takes long is their common headers, and with little optimisation. What
# computes (the ggml libraries) is left as it is. With other batches, names of two files can be in each other's way.
if(PROJECT_NAME STREQUAL "llama.cpp")
  function(probity_quicken)
    if(TARGET llama)
      set_target_properties(llama PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 32)
      if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
        target_compile_options(llama PRIVATE -O1)
      endif()
    endif()
  endfunction()
  cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL probity_quicken)
endif()
