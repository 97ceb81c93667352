# Writes the hash of every kernel source with its place, as KernelSources.hash of the package computes it.
# cmake -DKERNELS=folder -DMANIFEST=file -P manifest.cmake
file(GLOB own RELATIVE ${KERNELS} ${KERNELS}/cuda/*.cu ${KERNELS}/cuda/*.h)
file(GLOB_RECURSE included RELATIVE ${KERNELS} ${KERNELS}/include/*.h)
set(places ${own} ${included})
list(SORT places COMPARE STRING)
set(lines "")
foreach(place ${places})
  file(SHA256 ${KERNELS}/${place} hash)
  string(APPEND lines "${place} ${hash}\n")
endforeach()
string(SHA256 total "${lines}")
file(WRITE ${MANIFEST} "{\"sources\": \"${total}\"}\n")
