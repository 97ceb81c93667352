// A document's place in one list.
#pragma once

#include "hopfuse/integers.h"

#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct Entry {
    int64_t id;
    int32_t list;
    float value;  // of the method's list_values
};

// By document, then by list.
HOPFUSE_FN bool entry_before(const Entry& a, const Entry& b) {
    return a.id < b.id || (a.id == b.id && a.list < b.list);
}

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
