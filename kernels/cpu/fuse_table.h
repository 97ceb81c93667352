// The documents of one query by id. Included once per instruction set.
#pragma once

#include <algorithm>

#include "hopfuse/integers.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// A hash table with open addressing, at most half full, with 16 bytes per document: its id, a value, and the query's stamp
// plus the number of lists that contain it. Slots with a lower stamp are free, so nothing is cleared between queries.
template <class Value>
class DocumentTable {
public:
    struct Slot {
        int64_t id;
        uint32_t stamp;
        Value value;
    };

    // For queries of at most `most` entries, below 2^31.
    explicit DocumentTable(size_t most) : most_(uint32_t(most)), opened_(most + 1) {
        size_t slots = 16;
        while (slots < 2 * most) slots *= 2, --shift_;
        slots_.resize(slots);
        mask_ = slots - 1;
    }

    // Starts another query.
    void clear() {
        count_ = 0;
        const bool spent = stamp_ > ~uint32_t{0} - 2 * most_ - 1;
        if (spent) std::fill(slots_.begin(), slots_.end(), Slot{});
        stamp_ = (spent ? 0 : stamp_) + most_ + 1;
    }

    // Fibonacci hashing: ids in any arithmetic progression spread over the upper bits.
    static uint64_t hash(int64_t id) { return uint64_t(id) * 0x9e3779b97f4a7c15u; }

    // A document's slot, set to `value` if the document is new. There is no branch on that, as it is unpredictable.
    Slot& open(int64_t id, Value value) {
        const size_t at = place(id);
        Slot& slot = slots_[at];
        const bool is_new = slot.stamp < stamp_;
        slot = {id, is_new ? stamp_ : slot.stamp, is_new ? value : slot.value};
        opened_[size_t(count_)] = uint32_t(at);
        count_ += is_new;
        return slot;
    }

    // A document's slot, or null.
    Slot* find(int64_t id) {
        Slot& slot = slots_[place(id)];
        return slot.stamp < stamp_ ? nullptr : &slot;
    }

    static void hold(Slot& slot) { ++slot.stamp; }
    int held(const Slot& slot) const { return int(slot.stamp - stamp_); }

    // Documents 0 .. count() - 1, in the order in which they were opened.
    int64_t count() const { return count_; }
    Slot& operator[](int64_t document) { return slots_[opened_[size_t(document)]]; }

    // Marks a document as in no list any more.
    void release(Slot& slot, Value value) const { slot.stamp = stamp_, slot.value = value; }

private:
    size_t place(int64_t id) const {
        size_t at = size_t(hash(id) >> shift_);
        while (slots_[at].stamp >= stamp_ && slots_[at].id != id) at = (at + 1) & mask_;
        return at;
    }

    uint32_t most_, stamp_ = 0;
    int shift_ = 60;
    size_t mask_ = 0;
    int64_t count_ = 0;
    Vec<Slot> slots_;
    Vec<uint32_t> opened_;
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
