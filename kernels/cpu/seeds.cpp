#include "seeds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "threads.h"

namespace hopfuse {

namespace {

constexpr int64_t no_id = -1;
constexpr float no_score = -std::numeric_limits<float>::infinity();

double sum_of(const double* values, int64_t count) {
    double total = 0.0;
    for (int64_t i = 0; i < count; ++i) total += values[i];
    return total;
}

bool divides(double total) { return total > 0.0 && std::isfinite(total); }

// The entries of a query's hits by rank and then by node, and the order of the entries by node.
class HeldNodes {
public:
    void read(const GivenHits& hits, int64_t query, const GivenMentions& mentions, const int64_t* frequency) {
        node_.clear(), value_.clear();
        const int64_t* const ids = hits.ids + query * hits.width;
        for (int64_t j = 0; j < hits.counts[query]; ++j)
            for (int64_t entry = mentions.indptr[ids[j]]; entry < mentions.indptr[ids[j] + 1]; ++entry) {
                const int32_t node = mentions.indices[entry];
                const int64_t often = frequency[node];
                const double worth = mentions.weights == nullptr ? 1.0 : double{mentions.weights[entry]};
                node_.push_back(node);
                value_.push_back(often > 0 ? worth / static_cast<double>((j + 1) * often) : 0.0);
            }
        by_node_.resize(node_.size());
        for (size_t i = 0; i < by_node_.size(); ++i) by_node_[i] = static_cast<int64_t>(i);
        std::sort(by_node_.begin(), by_node_.end(), [this](int64_t a, int64_t b) {
            return node_[size_t(a)] != node_[size_t(b)] ? node_[size_t(a)] < node_[size_t(b)] : a < b;
        });
    }

    double sum() const { return sum_of(value_.data(), static_cast<int64_t>(value_.size())); }

    // Calls body(node, its first entry, the sum of its values in the order of entries) for each distinct node, ascending.
    template <class Body>
    void for_nodes(const Body& body) const {
        for (size_t begin = 0, end = 0; begin < by_node_.size(); begin = end) {
            const int32_t node = node_[size_t(by_node_[begin])];
            double total = 0.0;
            for (end = begin; end < by_node_.size() && node_[size_t(by_node_[end])] == node; ++end)
                total += value_[size_t(by_node_[end])];
            body(int64_t{node}, by_node_[begin], total);
        }
    }

private:
    std::vector<int32_t> node_;
    std::vector<double> value_;
    std::vector<int64_t> by_node_;
};

// Whether a row holds the node with a weight above 0.
bool holds(const GivenMentions& mentions, int64_t row, int64_t node) {
    const int32_t* const begin = mentions.indices + mentions.indptr[row];
    const int32_t* const end = mentions.indices + mentions.indptr[row + 1];
    const int32_t* const at = std::lower_bound(begin, end, node);
    return at != end && *at == node && (mentions.weights == nullptr || mentions.weights[at - mentions.indices] > 0.0f);
}

// The places of a query's heavy seeds, by weight and then by lower node.
void order_seeds(const GivenSeeds& seeds, int64_t query, double least, std::vector<int64_t>& order) {
    const int64_t* const node = seeds.node + query * seeds.width;
    const double* const weight = seeds.weight + query * seeds.width;
    double heaviest = 0.0;
    for (int64_t s = 0; s < seeds.width; ++s)
        if (node[s] >= 0 && weight[s] > heaviest) heaviest = weight[s];
    order.clear();
    for (int64_t s = 0; s < seeds.width; ++s)
        if (node[s] >= 0 && weight[s] > 0.0 && weight[s] >= least * heaviest) order.push_back(s);
    std::sort(order.begin(), order.end(),
              [&](int64_t a, int64_t b) { return weight[a] != weight[b] ? weight[a] > weight[b] : node[a] < node[b]; });
}

}  // namespace

void add_passage_seeds(const GivenSeeds& seeds, const GivenHits& hits, double mass, const SeedRows& out) {
    const int64_t width = seeds.width + hits.width;
    for (int64_t query = 0; query < seeds.batch; ++query) {
        const int64_t* const node = seeds.node + query * seeds.width;
        const double* const weight = seeds.weight + query * seeds.width;
        const int64_t* const ids = hits.ids + query * hits.width;
        const float* const scores = hits.scores + query * hits.width;
        const int64_t count = hits.counts[query];
        const double own = sum_of(weight, seeds.width);
        double other = 0.0;
        for (int64_t j = 0; j < count; ++j) other += scores[j] > 0.0f ? double{scores[j]} : 0.0;
        int64_t* const nodes = out.node + query * width;
        double* const weights = out.weight + query * width;
        for (int64_t s = 0; s < seeds.width; ++s) {
            nodes[s] = node[s];
            weights[s] = divides(own) ? weight[s] / own : weight[s];
        }
        for (int64_t j = 0; j < hits.width; ++j) {
            nodes[seeds.width + j] = no_id, weights[seeds.width + j] = 0.0;
            if (j >= count || !(scores[j] > 0.0f)) continue;
            const double share = mass * double{scores[j]} / other;
            const int64_t* const known = std::find(node, node + seeds.width, ids[j]);
            if (known != node + seeds.width) weights[known - node] += share;
            else nodes[seeds.width + j] = ids[j], weights[seeds.width + j] = share;
        }
    }
}

int64_t most_entries(const GivenHits& hits, int64_t batch, const int64_t* indptr) {
    int64_t most = 0;
    for (int64_t query = 0; query < batch; ++query) {
        int64_t entries = 0;
        for (int64_t j = 0; j < hits.counts[query]; ++j) {
            const int64_t row = hits.ids[query * hits.width + j];
            entries += indptr[row + 1] - indptr[row];
        }
        most = std::max(most, entries);
    }
    return most;
}

Status add_entity_seeds(const GivenSeeds& seeds, const GivenHits& hits, const GivenMentions& mentions,
                        const int64_t* frequency, int64_t frequency_stride, double mass, int64_t places,
                        const SeedRows& out) {
    const int64_t width = seeds.width + places;
    return status_of([&] {
        HeldNodes held;
        for (int64_t query = 0; query < seeds.batch; ++query) {
            const int64_t* const node = seeds.node + query * seeds.width;
            const double* const weight = seeds.weight + query * seeds.width;
            held.read(hits, query, mentions, frequency + query * frequency_stride);
            const double own = sum_of(weight, seeds.width), other = held.sum();
            const bool has_own = divides(own), has_other = other > 0.0;
            const double kept = has_own && has_other ? 1.0 - mass : 1.0, given = has_own ? mass : 1.0;
            int64_t* const nodes = out.node + query * width;
            double* const weights = out.weight + query * width;
            for (int64_t s = 0; s < seeds.width; ++s) {
                nodes[s] = node[s];
                weights[s] = kept * (has_own ? weight[s] / own : weight[s]);
            }
            std::fill_n(nodes + seeds.width, places, no_id);
            std::fill_n(weights + seeds.width, places, 0.0);
            if (!has_other) continue;
            held.for_nodes([&](int64_t one, int64_t first, double value) {
                const double share = value * given / other;
                const int64_t* const known = std::find(node, node + seeds.width, one);
                if (known != node + seeds.width) weights[known - node] += share;
                else if (share > 0.0) nodes[seeds.width + first] = one, weights[seeds.width + first] = share;
            });
        }
        return Status::ok;
    });
}

Status cover_seeds(const GivenSeeds& seeds, const GivenHits& hits, const GivenMentions& mentions, double least,
                   int64_t k, const HitRows& out) {
    return status_of([&] {
        std::vector<int64_t> order;
        std::vector<char> chosen;
        for (int64_t query = 0; query < seeds.batch; ++query) {
            const int64_t* const ids = hits.ids + query * hits.width;
            const int64_t count = hits.counts[query];
            chosen.assign(static_cast<size_t>(count), 0);
            int64_t left = std::min(k, count);
            if (left > 0) chosen[0] = 1, --left;
            if (left > 0) order_seeds(seeds, query, least, order);
            for (size_t at = 0; left > 0 && at < order.size(); ++at) {
                const int64_t node = seeds.node[query * seeds.width + order[at]];
                const int64_t* const first =
                    std::find_if(ids, ids + count, [&](int64_t row) { return holds(mentions, row, node); });
                if (first == ids + count || chosen[size_t(first - ids)] != 0) continue;
                chosen[size_t(first - ids)] = 1, --left;
            }
            int64_t found = 0;
            for (int64_t j = 0; j < count; ++j) {
                if (chosen[size_t(j)] == 0) continue;
                out.ids[query * k + found] = ids[j];
                out.scores[query * k + found] = hits.scores[query * hits.width + j];
                ++found;
            }
            out.counts[query] = found;
            std::fill(out.ids + query * k + found, out.ids + (query + 1) * k, no_id);
            std::fill(out.scores + query * k + found, out.scores + (query + 1) * k, no_score);
        }
        return Status::ok;
    });
}

void boost_weights(float* weights, int64_t batch, int64_t columns, const GivenHits& hits, float strength) {
    for (int64_t query = 0; query < batch; ++query) {
        const int64_t* const ids = hits.ids + query * hits.width;
        const float* const scores = hits.scores + query * hits.width;
        float* const own = weights + query * columns;
        float most = 0.0f;
        for (int64_t j = 0; j < hits.counts[query]; ++j) most = scores[j] > most ? scores[j] : most;
        for (int64_t j = 0; j < hits.counts[query]; ++j)
            if (scores[j] > 0.0f) own[ids[j]] *= 1.0f + strength * (scores[j] / most);
    }
}

}  // namespace hopfuse
