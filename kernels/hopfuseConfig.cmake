# find_package(hopfuse) for C++ programs: the target hopfuse::kernels. docs/guides/cpp.md.
include(CMakeFindDependencyMacro)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/hopfuseTargets.cmake)
