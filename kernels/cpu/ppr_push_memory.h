// The memory of a thread's local walks, reused from query to query. Included once per instruction set.
#pragma once

#include <algorithm>
#include <cstring>

#include "simd.h"
#include "vec.h"
#include "workspace.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// Slots of the workspace's zeros.
enum PushSlot { slot_residual, slot_estimate, slot_bits, slot_summary, slot_known };

// The residual of a node whose mass was taken. It differs from +0, that of a node that no push has reached.
constexpr double TAKEN = -0.0;

HF_INLINE bool is_reached(double residual) {
    int64_t bits;
    std::memcpy(&bits, &residual, sizeof bits);
    return bits != 0;
}

// The order of the library's algorithms here, so that their names are this instruction set's own.
struct Ascending {
    bool operator()(int32_t a, int32_t b) const { return a < b; }
};
struct Descending {
    bool operator()(double a, double b) const { return a > b; }
};

// A list in memory of the workspace, with room for each node.
template <class T>
struct NodeList {
    T* data = nullptr;
    int64_t size = 0;

    bool reserve(Workspace& work, int slot, int64_t most) {
        data = work.reserve<T>(slot, size_t(most));
        return data != nullptr;
    }
    void clear() { size = 0; }
    void push(T one) { data[size++] = one; }
    T& operator[](int64_t i) const { return data[i]; }
    T* begin() const { return data; }
    T* end() const { return data + size; }
};

// Sorts nodes by marking them in a set of bits, which takes less time than comparing them. All bits are 0 between calls.
class NodeBits {
public:
    bool reserve(Workspace& work, int64_t nodes) {
        words_ = work.reserve_zeros<uint64_t>(slot_bits, size_t(nodes) / 64 + 1);
        summary_ = work.reserve_zeros<uint64_t>(slot_summary, size_t(nodes) / 4096 + 1);
        return words_ != nullptr && summary_ != nullptr;
    }

    // Sorts distinct nodes in ascending order.
    void sort(const NodeList<int32_t>& nodes) {
        constexpr int64_t few = 24;
        if (nodes.size < few) return std::sort(nodes.begin(), nodes.end(), Ascending{});
        for (const int32_t node : nodes) mark(node);
        int64_t at = 0;
        for (int64_t block = 0; at < nodes.size; ++block) drain(block, [&](int32_t node) { nodes[at++] = node; });
    }

    void mark(int32_t node) {
        const int64_t word = node >> 6;
        words_[word] |= uint64_t{1} << (node & 63);
        summary_[word >> 6] |= uint64_t{1} << (word & 63);
    }

    // Calls take(node) for the marked nodes from first to last, in ascending order, and unmarks them.
    template <class Take>
    void drain(int32_t first, int32_t last, const Take& take) {
        for (int64_t block = first >> 12; block <= last >> 12; ++block) drain(block, take);
    }

private:
    uint64_t* words_ = nullptr;
    uint64_t* summary_ = nullptr;  // bit w of word s: whether word 64 s + w has bits

    template <class Take>
    void drain(int64_t block, const Take& take) {
        for (uint64_t left = summary_[block]; left != 0; left &= left - 1) {
            const int64_t word = 64 * block + __builtin_ctzll(left);
            for (uint64_t bits = words_[word]; bits != 0; bits &= bits - 1)
                take(static_cast<int32_t>(64 * word + __builtin_ctzll(bits)));
            words_[word] = 0;
        }
        summary_[block] = 0;
    }
};

// A candidate with the bounds of its score: from `least` to `least` + `width`.
struct Contender {
    double least, width;
    int32_t node;  // internal
    int64_t id;    // the caller's

    double score() const { return least + 0.5 * width; }
    double most() const { return least + width; }
};

struct Seed {
    int32_t node;
    double share;
};

struct PushMemory {
    double* residual = nullptr;  // (N,) r
    double* estimate = nullptr;  // (N,) x
    double* known = nullptr;     // (N,) with node weights: what is known of D, or -D
    float* guide = nullptr;      // (N,) node weights
    NodeBits bits;
    NodeList<int32_t> reached, hits;  // the nodes that pushes have reached, in order, and the candidates among them
    NodeList<int32_t> front, next, fresh;
    NodeList<double> factor;              // what a push of each node of the front adds per unit of weight
    NodeList<float> gain;                 // with node weights: those of nodes that were not pushed before, else 0
    NodeList<double> least, width, best;  // bounds of the hits, and the lower bounds that may be among the k best
    Vec<Contender> contenders;
    Vec<Seed> apart;  // seeds without edges

    PushMemory() = default;
    PushMemory(const PushMemory&) = delete;
    PushMemory& operator=(const PushMemory&) = delete;
    ~PushMemory() { clear(); }

    // With `guided`, also for walks with node weights.
    bool reserve(Workspace& work, int64_t nodes, bool guided) {
        residual = work.reserve_zeros<double>(slot_residual, size_t(nodes));
        estimate = work.reserve_zeros<double>(slot_estimate, size_t(nodes));
        bool all = residual != nullptr && estimate != nullptr && bits.reserve(work, nodes);
        int slot = 0;
        for (NodeList<int32_t>* list : {&reached, &hits, &front, &next, &fresh})
            all = all && list->reserve(work, slot++, nodes + 1);  // loops write one beyond the last
        for (NodeList<double>* list : {&factor, &least, &width, &best})
            all = all && list->reserve(work, slot++, nodes + 1);
        if (!guided) return all;
        known = work.reserve_zeros<double>(slot_known, size_t(nodes));
        guide = work.reserve<float>(slot++, size_t(nodes));
        return all && known != nullptr && guide != nullptr && gain.reserve(work, slot++, nodes + 1);
    }

    void clear() {
        for (const int32_t node : reached) residual[node] = estimate[node] = 0.0;
        for (int64_t i = 0; known != nullptr && i < reached.size; ++i) known[reached[i]] = 0.0;
        reached.clear(), hits.clear(), contenders.clear(), apart.clear();
    }
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
