// Which arrays are copied to the host together, of this folder alone.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "state.h"

namespace hopfuse::device {

// Bytes of one allocation that are copied at once, to the offset `at` of a block of the host.
struct Group {
    const char* begin;
    size_t nbytes, at;
    size_t first;  // one of its arrays
};

// Groups arrays that are in one allocation with fewer than `between` bytes between them, by default nothing but padding; begins[i]
// becomes the offset of array i in the block.
template <class Together>
std::vector<Group> group_arrays(std::span<const void* const> from, std::span<const size_t> nbytes,
                                std::span<size_t> begins, const Together& are_of_one_allocation,
                                size_t between = ALIGNMENT) {
    std::vector<Group> groups;
    std::vector<size_t> of(from.size());
    for (size_t i = 0; i < from.size(); ++i) {
        if (!nbytes[i]) continue;
        const char* const begin = static_cast<const char*>(from[i]);
        size_t at = 0;
        for (; at < groups.size(); ++at) {
            Group& group = groups[at];
            const char *const end = begin + nbytes[i], *const group_end = group.begin + group.nbytes;
            const bool is_near = begin < group_end + between && group.begin < end + between;
            if (HOPFUSE_PLANT(50, !is_near, false) || !are_of_one_allocation(group.first, i)) continue;
            group.begin = std::min(begin, group.begin);
            group.nbytes = static_cast<size_t>(std::max(end, group_end) - group.begin);
            break;
        }
        if (at == groups.size()) groups.push_back({begin, nbytes[i], 0, i});
        of[i] = at;
    }
    size_t total = 0;
    for (Group& group : groups) {
        group.at = rounded(total, ALIGNMENT);
        total = group.at + group.nbytes;
    }
    for (size_t i = 0; i < from.size(); ++i)
        begins[i] =
            nbytes[i] ? groups[of[i]].at + static_cast<size_t>(static_cast<const char*>(from[i]) - groups[of[i]].begin)
                      : 0;
    return groups;
}

}  // namespace hopfuse::device
