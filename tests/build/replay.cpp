// Replays recorded calls (.ci/record_calls.py) on one variant of the kernels, without Python: on another
// architecture, or under a sanitizer. Inputs and outputs live in buffers of exactly their size, so that a sanitizer
// sees a step beyond them.
//
//   replay CALLS VARIANT THREADS COPIES OUT
//   replay race | overflow | undefined
//
// COPIES threads replay all calls at the same time, each with THREADS threads; they must agree. OUT receives
// every output array, in the order of the calls. The second form commits that offence, to show that the sanitizer of
// a build is awake.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../../kernels/cpu/kernels.h"
#include "../../kernels/cpu/prepared_graph.h"
#include "../../kernels/cpu/workspace.h"

namespace {

using namespace hopfuse;

[[noreturn]] void fail(const std::string& message) {
    std::fprintf(stderr, "replay: %s\n", message.c_str());
    std::exit(2);
}

// An array or a number of a call. Outputs are recorded by shape only.
struct Field {
    bool output = false;
    int itemsize = 0;
    std::vector<int64_t> shape;
    std::shared_ptr<unsigned char[]> bytes;

    size_t size() const {
        size_t count = size_t(itemsize);
        for (int64_t extent : shape) count *= size_t(extent);
        return count;
    }
};

struct Call {
    std::string op;
    std::map<std::string, Field> fields;
    std::vector<std::string> order;

    bool has(const std::string& name) const { return fields.count(name) != 0; }
    const Field& field(const std::string& name) const {
        const auto found = fields.find(name);
        if (found == fields.end()) fail(op + " has no field " + name);
        return found->second;
    }
    template <class T>
    T* array(const std::string& name) const {
        const Field& f = field(name);
        if (f.itemsize != int(sizeof(T))) fail(op + "." + name + " has another type");
        return reinterpret_cast<T*>(f.bytes.get());
    }
    template <class T>
    T* optional(const std::string& name) const {
        return has(name) ? array<T>(name) : nullptr;
    }
    int64_t whole(const std::string& name) const { return *array<int64_t>(name); }
    double real(const std::string& name) const { return *array<double>(name); }
    int64_t extent(const std::string& name, size_t axis) const { return field(name).shape.at(axis); }
};

template <class T>
T read(std::istream& in) {
    T value;
    if (!in.read(reinterpret_cast<char*>(&value), sizeof value)) fail("the calls end too early");
    return value;
}

std::string read_name(std::istream& in) {
    std::string name(read<uint32_t>(in), '\0');
    if (!in.read(name.data(), std::streamsize(name.size()))) fail("the calls end too early");
    return name;
}

std::vector<Call> read_calls(const char* path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) fail(std::string("cannot open ") + path);
    std::vector<Call> calls(read<uint32_t>(in));
    for (Call& call : calls) {
        call.op = read_name(in);
        for (uint32_t left = read<uint32_t>(in); left > 0; --left) {
            const std::string name = read_name(in);
            Field field;
            field.output = read<uint8_t>(in) != 0;
            field.itemsize = read<uint8_t>(in);
            field.shape.resize(read<uint32_t>(in));
            for (int64_t& extent : field.shape) extent = read<int64_t>(in);
            field.bytes.reset(new unsigned char[field.size()]());
            if (!field.output) in.read(reinterpret_cast<char*>(field.bytes.get()), std::streamsize(field.size()));
            if (!in) fail("the calls end too early");
            call.order.push_back(name);
            call.fields.emplace(name, std::move(field));
        }
    }
    return calls;
}

// Fresh outputs, so that copies of a call do not share them.
Call with_own_outputs(const Call& call) {
    Call own = call;
    for (auto& [name, field] : own.fields)
        if (field.output) field.bytes.reset(new unsigned char[field.size()]());
    return own;
}

// ------------------------------------------------------------------------------------------------

// Prepared graphs by the number of the call that made them, which all copies share: walks at the same time make their layouts.
class Graphs {
public:
    PreparedGraph& of(int64_t number, const Call& call) {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::unique_ptr<PreparedGraph>& made = made_[number];
        if (!made) made = std::make_unique<PreparedGraph>(arrays(call), PreparedGraph::Sizes());
        return *made;
    }

private:
    std::mutex mutex_;
    std::map<int64_t, std::unique_ptr<PreparedGraph>> made_;

    static GraphArrays arrays(const Call& c) {
        return {c.extent("node_of", 0),      c.extent("indices", 0),           int32_t(c.whole("num_types")),
                c.whole("directed") != 0,    c.array<int64_t>("indptr"),       c.array<int32_t>("indices"),
                c.optional<float>("weight"), c.optional<uint8_t>("edge_type"), c.array<double>("degree"),
                c.array<int32_t>("node_of"), c.array<int32_t>("internal_of")};
    }
};

struct Replay {
    const CpuKernels& kernels;
    int32_t threads;
    Graphs& graphs;
    std::vector<Call> done = {};

    PreparedGraph& graph(const Call& call) const {
        const int64_t number = call.whole("graph");
        return graphs.of(number, done.at(size_t(number)));
    }

    PprQueries ppr_queries(const Call& c) const {
        PprQueries q{};
        q.batch = c.extent("damping", 0);
        q.restart_indptr = c.array<int64_t>("restart_indptr"), q.restart_node = c.array<int32_t>("restart_node");
        q.restart_value = c.array<double>("restart_value"), q.damping = c.array<double>("damping");
        q.eta = c.optional<double>("eta"), q.per_type = c.whole("per_type") != 0;
        q.allow = c.optional<uint8_t>("allow");
        q.allow_shared = q.allow != nullptr && c.extent("allow", 0) == 1;
        q.tol = c.real("tol"), q.max_iter = c.whole("max_iter"), q.execution = {threads};
        return q;
    }

    static PprEvidence evidence(const Call& c) {
        return {c.array<int64_t>("iterations"), c.array<double>("residual"), c.array<double>("bound"),
                c.array<uint8_t>("converged")};
    }

    Status walk(const Call& c, float* scores, const PprTopk* top) const {
        const PprQueries queries = ppr_queries(c);
        const PprGraph* view = nullptr;
        PprCourse course;
        const Status status = graph(c).view(queries, top != nullptr && top->stop_when_proven, view, course);
        return status == Status::ok ? kernels.ppr_f32(*view, queries, scores, top, evidence(c)) : status;
    }

    Status ppr(const Call& c) const { return walk(c, c.array<float>("scores"), nullptr); }

    Status ppr_topk(const Call& c) const {
        PprTopk top{};
        top.width = c.extent("ids", 1);
        top.candidates = c.optional<int32_t>("candidates"),
        top.num_candidates = top.candidates == nullptr ? 0 : c.extent("candidates", 0);
        const int64_t nodes = graph(c).arrays().num_nodes;
        top.k = std::min(top.width, top.candidates == nullptr ? nodes : top.num_candidates);
        top.stop_when_proven = c.whole("stop_when_proven") != 0, top.prove_order = c.whole("prove_order") != 0;
        top.ids = c.array<int64_t>("ids"), top.scores = c.array<float>("scores");
        top.counts = c.array<int64_t>("counts"), top.score_bounds = c.array<float>("score_bounds");
        top.proven = c.array<uint8_t>("proven");
        return walk(c, nullptr, &top);
    }

    Status ppr_push(const Call& c) const {
        PprQueries q{};
        q.batch = c.extent("damping", 0);
        q.restart_indptr = c.array<int64_t>("restart_indptr"), q.restart_node = c.array<int32_t>("restart_node");
        q.restart_value = c.array<double>("restart_value"), q.damping = c.array<double>("damping");
        q.eta = c.optional<double>("eta"), q.tol = c.real("tol"), q.execution = {threads};
        q.node_weight = c.optional<float>("node_weight"), q.weighted_node = c.optional<int32_t>("weighted_node");
        q.num_weighted = q.weighted_node == nullptr ? 0 : c.extent("weighted_node", 0);
        q.other_weight = c.optional<float>("other_weight");
        PprTopk top{};
        top.k = top.width = c.extent("ids", 1), top.prove_order = c.whole("prove_order") != 0;
        top.ids = c.array<int64_t>("ids"), top.scores = c.array<float>("scores");
        top.counts = c.array<int64_t>("counts"), top.score_bounds = c.array<float>("score_bounds");
        top.proven = c.array<uint8_t>("proven");
        const PprPush push{
            {c.whole("num_candidates"), c.optional<uint64_t>("candidate_bits"), c.array<double>("largest_degree")},
            c.array<int64_t>("budget"),
            c.whole("gives_up") != 0};
        const PprGraph* view = nullptr;
        const Status status = graph(c).push_view(q.eta != nullptr, q.execution, view);
        if (status != Status::ok) return status;
        return kernels.ppr_push_f64(
            *view, q, push, top, evidence(c),
            {c.array<int64_t>("rounds"), c.array<int64_t>("rows"), c.array<int64_t>("entries")});
    }

    // Encodes with this variant first: the codes need not be the recording machine's.
    Status dense_topk(const Call& c) const {
        const Field& vectors = c.field("vectors");
        const DenseVectors rows{vectors.shape[0], int32_t(vectors.shape[1]), DenseType(c.whole("type")),
                                c.whole("cosine") != 0, vectors.bytes.get()};
        const DenseCodes codes{c.array<uint8_t>("codes"), c.array<float>("scale"), c.array<float>("error"),
                               c.array<float>("norm_code"), c.array<float>("norm")};
        const Status status = kernels.dense_encode(rows, codes, {threads});
        if (status != Status::ok) return status;
        const DenseQueries queries{c.extent("queries", 0),
                                   c.array<float>("queries"),
                                   c.whole("k"),
                                   c.optional<uint8_t>("allow_mask"),
                                   c.optional<int64_t>("allow_indptr"),
                                   c.optional<int64_t>("allow_ids"),
                                   c.whole("allow_shared") != 0,
                                   {threads}};
        std::vector<int64_t> rescored(size_t(queries.batch));
        const DenseHits hits{c.array<int64_t>("ids"), c.array<float>("scores"), c.array<int64_t>("counts"),
                             rescored.data(), nullptr};
        return kernels.dense_topk({rows, codes}, queries, hits);
    }

    static CalibrationRule rule(const Call& c, const char* method, const std::string& option) {
        return {Calibration(c.whole(method)),           Ties(c.whole("ties")),
                float(c.real(option + ".single")),      float(c.real(option + ".equal")),
                float(c.real(option + ".temperature")), c.array<float>(option + ".lower"),
                c.array<float>(option + ".upper")};
    }

    static FusionOptions fusion_options(const Call& c) {
        FusionOptions option{};
#define HOPFUSE_READ(name) \
    if (c.has("option." #name)) option.name = float(c.real("option." #name));
        HOPFUSE_FUSION_NUMBERS(HOPFUSE_READ)
#undef HOPFUSE_READ
#define HOPFUSE_READ(name, size) \
    if (c.has("option." #name)) option.name = c.array<float>("option." #name);
        HOPFUSE_FUSION_ARRAYS(HOPFUSE_READ)
#undef HOPFUSE_READ
        return option;
    }

    Status calibrate(const Call& c) const {
        return kernels.calibrate_f32({c.extent("scores", 0),
                                      c.extent("scores", 1),
                                      c.array<float>("scores"),
                                      c.array<int64_t>("counts"),
                                      rule(c, "method", "option"),
                                      c.array<float>("out"),
                                      {threads}});
    }

    Status fuse(const Call& c) const {
        std::vector<FuseList> lists;
        for (char l = '0'; c.has(std::string("ids.") + l); ++l) {
            const std::string ids = std::string("ids.") + l;
            lists.push_back({c.extent(ids, 1), c.array<int64_t>(ids), c.array<float>(std::string("scores.") + l),
                             c.array<int64_t>(std::string("counts.") + l)});
        }
        FuseArgs args{};
        args.batch = c.extent("out_ids", 0), args.k = c.extent("out_ids", 1);
        args.num_lists = int32_t(lists.size()), args.lists = lists.data();
        args.pools = c.array<int64_t>("pools");
        args.method = FusionMethod(c.whole("method")), args.option = fusion_options(c);
        args.calibration = rule(c, "calibration", "calibration_option");
        args.weights = c.array<float>("weights"), args.weights_shared = c.whole("weights_shared") != 0;
        args.finish = {float(c.real("consensus")), c.array<float>("prior"), c.extent("prior", 0)};
        args.execution = {threads};
        args.ids = c.array<int64_t>("out_ids"), args.scores = c.array<float>("out_scores");
        args.counts = c.array<int64_t>("out_counts");
        return kernels.fuse_f32(args);
    }

    Status ising(const Call& c) const {
        IsingArgs args{};
        args.graph = {c.extent("internal_of", 0), c.array<int64_t>("indptr"),
                      entries_of(c.array<int32_t>("indices"), c.optional<float>("weight")),
                      c.array<int32_t>("internal_of")};
        args.model = {float(c.real("coupling")), float(c.real("temperature")), float(c.real("relaxation")),
                      int32_t(c.whole("steps")), float(c.real("blend"))};
        args.batch = c.extent("ids", 0), args.width = c.extent("ids", 1), args.k = c.extent("out_ids", 1);
        args.ids = c.array<int64_t>("ids"), args.scores = c.array<float>("scores");
        args.counts = c.array<int64_t>("counts");
        args.out_ids = c.array<int64_t>("out_ids"), args.out_scores = c.array<float>("out_scores");
        args.out_counts = c.array<int64_t>("out_counts"), args.execution = {threads};
        return kernels.ising_f32(args);
    }

    Status dice(const Call& c) const {
        return kernels.dice_f32({{c.array<int64_t>("label_indptr"), c.array<int32_t>("label_units")},
                                 int32_t(c.whole("units")),
                                 {c.array<int64_t>("query_indptr"), c.array<int32_t>("query_units")},
                                 c.extent("indptr", 0) - 1,
                                 c.array<int64_t>("indptr"),
                                 c.array<int32_t>("candidates"),
                                 int32_t(c.extent("candidates", 1)),
                                 c.array<float>("scores"),
                                 {threads}});
    }

    ProjectArgs projection(const Call& c) const {
        return {{c.extent("indptr", 0) - 1, c.extent("scores", 1), c.array<int64_t>("indptr"),
                 c.array<int32_t>("indices"), c.optional<float>("weight"), c.optional<float>("scale")},
                c.extent("scores", 0),
                c.array<float>("scores"),
                c.array<int32_t>("status"),
                {threads}};
    }

    Status project(const Call& c) const { return kernels.project_f32(projection(c), c.array<float>("out"), nullptr); }

    Status project_topk(const Call& c) const {
        const ProjectHits hits{c.extent("out_ids", 1), c.array<int64_t>("out_ids"), c.array<float>("out_scores"),
                               c.array<int64_t>("out_counts")};
        return kernels.project_f32(projection(c), nullptr, &hits);
    }

    Status similarity(const Call& c) const {
        const Field& vectors = c.field("vectors");
        return kernels.similarity_f32(
            {{vectors.shape[0], int32_t(vectors.shape[1]), DenseType(c.whole("type")), true, vectors.bytes.get()},
             c.extent("queries", 0),
             c.array<float>("queries"),
             c.optional<uint8_t>("allow_mask"),
             c.whole("allow_shared") != 0,
             c.real("tau"),
             float(c.real("floor")),
             {threads}},
            c.array<float>("out"));
    }

    Status run(const Call& c) const {
        if (c.op == "graph") return Status::ok;
        if (c.op == "ppr") return ppr(c);
        if (c.op == "ppr_topk") return ppr_topk(c);
        if (c.op == "ppr_push") return ppr_push(c);
        if (c.op == "dense_topk") return dense_topk(c);
        if (c.op == "calibrate") return calibrate(c);
        if (c.op == "fuse") return fuse(c);
        if (c.op == "ising") return ising(c);
        if (c.op == "dice") return dice(c);
        if (c.op == "similarity") return similarity(c);
        if (c.op == "project") return project(c);
        if (c.op == "project_topk") return project_topk(c);
        fail("unknown op " + c.op);
    }

    void run_all(const std::vector<Call>& calls) {
        for (const Call& call : calls) {
            done.push_back(with_own_outputs(call));
            if (run(done.back()) != Status::ok) fail(call.op + " did not return ok");
        }
    }

    std::string outputs() const {
        std::string all;
        for (const Call& call : done)
            for (const std::string& name : call.order) {
                const Field& field = call.field(name);
                const char* bytes = reinterpret_cast<const char*>(field.bytes.get());
                // The codes may differ from one variant to another; they only choose candidates.
                const bool code = call.op == "dense_topk" && name != "ids" && name != "scores" && name != "counts";
                if (field.output && !code) all.append(bytes, field.size());
            }
        return all;
    }
};

const CpuKernels& variant(const std::string& name) {
    for (const CpuVariant* const* v = runnable_variants(); *v != nullptr; ++v)
        if (name == (*v)->isa) return **v;
    fail("this processor or build has no variant " + name);
}

int offend(const std::string& offence) {
    volatile int size = 16;
    std::vector<int> values(size_t(size), 1);
    int* const first = values.data();
    if (offence == "race") {
        const auto add = [first] {
            for (int i = 0; i < 100000; ++i) first[0] += i;
        };
        std::thread other(add);
        add();
        other.join();
    }
    if (offence == "overflow") first[size] = 1;
    if (offence == "undefined") first[0] = 1 << (2 * size);
    std::printf("%s: %d, and nothing stopped it\n", offence.c_str(), first[0]);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2) return offend(argv[1]);
    if (argc != 6) fail("usage: replay CALLS VARIANT THREADS COPIES OUT");
    const std::vector<Call> calls = read_calls(argv[1]);
    Graphs graphs;
    std::vector<Replay> copies;
    for (int i = 0; i < std::atoi(argv[4]); ++i) copies.push_back({variant(argv[2]), std::atoi(argv[3]), graphs});
    std::vector<std::thread> running;
    for (Replay& copy : copies) running.emplace_back([&copy, &calls] { copy.run_all(calls); });
    for (std::thread& thread : running) thread.join();
    const std::string all = copies.at(0).outputs();
    for (const Replay& copy : copies)
        if (copy.outputs() != all) fail("calls at the same time gave other outputs than one");
    std::ofstream(argv[5], std::ios::binary) << all;
    release_workspaces();
    std::printf("%zu calls, %zu output bytes\n", calls.size(), all.size());
    return 0;
}
