// hopfuse._native.DeviceRecording: a core of operations that is recorded once for a batch size, and replayed for any batch.
#include <algorithm>
#include <cstring>

#include "../kernels/device/recording.h"
#include "device_place.h"

namespace {

// Python's hopfuse._native.RecordingMemory.
struct SharedMemory {
    std::shared_ptr<native::RecordingMemory> memory;
};

// An array whose first axis is the batch.
struct Leaf {
    Shape shape;
    DType dtype;

    size_t nbytes() const { return row() * static_cast<size_t>(shape[0]); }
    size_t row() const {
        size_t bytes = dtype.bits / 8;
        for (size_t axis = 1; axis < shape.size(); ++axis) bytes *= static_cast<size_t>(shape[axis]);
        return bytes;
    }
    bool operator==(const Leaf& other) const { return shape == other.shape && dtype == other.dtype; }
};

// Fills an array with elements that are valid for every operation: 1 if they are floating-point numbers, else 0.
void fill_valid(std::byte* to, const Leaf& leaf) {
    std::memset(to, 0, leaf.nbytes());
    if (leaf.dtype.code != static_cast<uint8_t>(nb::dlpack::dtype_code::Float)) return;
    const size_t size = leaf.dtype.bits / 8, count = leaf.nbytes() / size;
    const float single = 1.0f;
    const double wide = 1.0;
    const uint16_t half = 0x3c00;
    const void* const one = size == 8   ? static_cast<const void*>(&wide)
                            : size == 4 ? static_cast<const void*>(&single)
                                        : &half;
    for (size_t at = 0; at < count; ++at) std::memcpy(to + at * size, one, size);
}

// The answers to queries: their faults, and those that must be run again without the recording.
class Judged {
public:
    // Statuses of the operations in their order, of `count` queries from `first` on.
    void add(const std::vector<const int32_t*>& statuses, int64_t first, int64_t count) {
        for (int64_t query = 0; query < count && fault_ == 0; ++query) {
            int32_t least = 1;
            for (const int32_t* status : statuses) {
                least = std::min(least, status[query]);
                if (status[query] >= 0) continue;
                fault_ = status[query], row_ = first + query;  // of the first operation, as without a recording
                break;
            }
            if (least == 0) left_.push_back(first + query);
        }
    }
    bool has_fault() const { return fault_ != 0; }
    // Raises the fault, if there is one.
    std::vector<int64_t> left() const {
        if (fault_ != 0) raise_query_fault(fault_, row_);
        return left_;
    }

private:
    int32_t fault_ = 0;
    int64_t row_ = 0;
    std::vector<int64_t> left_;
};

class DeviceRecording {
public:
    DeviceRecording(std::shared_ptr<native::Device> device, const SharedMemory& memory,
                    const std::vector<std::pair<Shape, nb::object>>& inputs)
        : device_(std::move(device)) {
        std::vector<size_t> nbytes;
        for (const auto& [shape, dtype] : inputs) {
            inputs_.push_back({shape, dtype_from(dtype)});
            nbytes.push_back(inputs_.back().nbytes());
        }
        rows_ = inputs_.at(0).shape.at(0);
        work_.emplace(device_, memory.memory, nbytes);
        for (size_t number = 0; number < inputs_.size(); ++number) fill_valid(work_->staged(number), inputs_[number]);
    }

    // Begins a run on this thread, and returns the inputs of the core.
    nb::list begin(bool records, bool for_host) {
        if (run_ != nullptr || is_recording(*device_)) throw std::runtime_error("captures cannot be nested");
        const DeviceQueue caller = queue_of_thread(device_);
        native::Queue& queue = work_->begin(caller.stream, records, for_host);
        run_ = std::make_shared<RecordingRun>(RecordingRun{&queue, records, {}});
        enter_queue({device_, queue.stream(), run_});
        nb::list made;
        for (size_t number = 0; number < inputs_.size(); ++number) {
            const native::Array<std::byte> memory = work_->input(number);
            const Leaf& leaf = inputs_[number];
            made.append(DeviceArray{device_, memory.owner(), memory.data(), leaf.shape, leaf.dtype, queue.stream()});
        }
        return made;
    }

    // Ends a run with the arrays of the result.
    void end(const std::vector<DeviceArray>& leaves) {
        std::vector<Leaf> found;
        std::vector<const void*> from;
        std::vector<size_t> nbytes;
        for (const DeviceArray& leaf : leaves) {
            if (leaf.device != device_) throw nb::type_error("a result of the core is on another device");
            found.push_back({leaf.shape, leaf.dtype});
            from.push_back(leaf.data), nbytes.push_back(leaf.nbytes());
        }
        for (const native::Array<int32_t>& status : run_->statuses) {
            if (static_cast<int64_t>(status.size()) != rows_)
                throw std::logic_error("an operation reports on another number of queries than the core has");
            from.push_back(status.data()), nbytes.push_back(status.nbytes());
        }
        const size_t statuses = run_->statuses.size();
        if (has_run_ && (found != outputs_ || statuses != num_statuses_))
            throw native::NotRecordable("the core returns other arrays in its recording than in the run before it");
        outputs_ = std::move(found), num_statuses_ = statuses, has_run_ = true;
        {
            const nb::gil_scoped_release release;
            if (run_->records) work_->end_recorded(from, nbytes);
            else work_->end_first(from);
        }
        leave();
    }

    // Ends a run in which something has raised.
    void abandon() {
        if (run_ == nullptr) return;
        {
            const nb::gil_scoped_release release;
            work_->abandon();
        }
        has_run_ = work_->has_run();
        leave();
    }

    bool has_run() const { return has_run_; }
    bool is_recorded(bool for_host) const { return work_->is_recorded(for_host); }
    int64_t rows() const { return rows_; }

    // Replays for arrays of the host, in parts of the recorded batch, the last padded with its last query. Returns the results, in
    // NumPy arrays, and the queries that the recording cannot prove; None if it must be made anew.
    nb::object on_host(const std::vector<nb::handle>& arrays, int64_t batch) {
        Views given(arrays, inputs_, batch);
        std::vector<size_t> begins;
        size_t size = 0;
        for (const Leaf& leaf : outputs_) {
            begins.push_back(size);
            size += (leaf.row() * static_cast<size_t>(batch) + 63) / 64 * 64;
        }
        const std::shared_ptr<std::byte[]> block(new std::byte[std::max<size_t>(1, size)]);
        Judged judged;
        bool is_lost = false;
        run([&] {
            for (int64_t first = 0; first < batch && !judged.has_fault(); first += rows_) {
                const int64_t count = std::min(rows_, batch - first);
                for (size_t number = 0; number < inputs_.size(); ++number) {
                    const size_t row = inputs_[number].row();
                    const std::byte* const from = given.data(number) + static_cast<size_t>(first) * row;
                    std::byte* const to = work_->staged(number);
                    std::memcpy(to, from, static_cast<size_t>(count) * row);
                    for (int64_t at = count; at < rows_; ++at)
                        std::memcpy(to + static_cast<size_t>(at) * row, from + static_cast<size_t>(count - 1) * row,
                                    row);
                }
                if (!work_->replay_on_host()) {
                    is_lost = true;
                    return;
                }
                std::vector<const int32_t*> statuses;
                for (size_t at = 0; at < num_statuses_; ++at)
                    statuses.push_back(reinterpret_cast<const int32_t*>(work_->result(outputs_.size() + at)));
                judged.add(statuses, first, count);
                for (size_t at = 0; at < outputs_.size(); ++at) {
                    const size_t row = outputs_[at].row();
                    std::memcpy(block.get() + begins[at] + static_cast<size_t>(first) * row, work_->result(at),
                                static_cast<size_t>(count) * row);
                }
            }
        });
        if (is_lost) return nb::none();
        const std::vector<int64_t> left = judged.left();
        const nb::object held = block_object(block, size);
        nb::list results;
        for (size_t at = 0; at < outputs_.size(); ++at)
            results.append(pinned_array(held, begins[at], batch_shape(outputs_[at], batch), outputs_[at].dtype));
        return nb::make_tuple(results, nb::cast(left));
    }

    // The same for arrays on the device; only statuses are read.
    nb::object on_device(const std::vector<nb::handle>& arrays, int64_t batch) {
        DeviceCall call(queue_of_thread(device_));
        Operands in(call);
        std::vector<Operand<std::byte>> given;
        for (nb::handle array : arrays) given.push_back(in.take<std::byte>(array));
        // One block, with room for the queries of whole recordings, so that each writes where the results stay.
        const auto parts = static_cast<size_t>((batch + rows_ - 1) / rows_), rows = static_cast<size_t>(rows_);
        std::vector<size_t> begins;
        size_t size = 0;
        for (const Leaf& leaf : outputs_) {
            begins.push_back(size);
            size += (leaf.nbytes() * parts + 255) / 256 * 256;
        }
        native::Array<std::byte> block;
        Judged judged;
        bool is_lost = false;
        call.run([&](native::Queue& queue) {
            in.upload();
            block = queue.empty<std::byte>(size + num_statuses_ * rows * sizeof(int32_t));
            const auto statuses = block.part(size, num_statuses_ * rows * sizeof(int32_t)).as<int32_t>();
            for (int64_t first = 0; first < batch && !judged.has_fault() && !is_lost; first += rows_) {
                const int64_t count = std::min(rows_, batch - first);
                std::vector<void*> to;
                for (size_t at = 0; at < outputs_.size(); ++at)
                    to.push_back(block.data() + begins[at] + static_cast<size_t>(first) * outputs_[at].row());
                for (size_t at = 0; at < num_statuses_; ++at) to.push_back(statuses.data() + at * rows);
                work_->begin_use(queue);
                for (size_t number = 0; number < inputs_.size(); ++number)
                    pad_into(queue, work_->input(number), given[number].array(), inputs_[number].row(), first, count);
                is_lost = !work_->replay(queue, to);
                if (is_lost || num_statuses_ == 0) continue;
                const std::vector<int32_t> read = queue.read(statuses);
                std::vector<const int32_t*> each;
                for (size_t at = 0; at < num_statuses_; ++at) each.push_back(read.data() + at * rows);
                judged.add(each, first, count);
            }
        });
        if (is_lost) return nb::none();
        const std::vector<int64_t> left = judged.left();
        nb::list results;
        for (size_t at = 0; at < outputs_.size(); ++at) {
            DeviceArray made;
            made.device = device_, made.owner = block.owner(), made.data = block.data() + begins[at];
            made.shape = batch_shape(outputs_[at], batch), made.dtype = outputs_[at].dtype;
            made.stream = call.place().stream;
            results.append(std::move(made));
        }
        return nb::make_tuple(results, nb::cast(left));
    }

private:
    // Host arrays of a batch, held while they are read.
    class Views {
    public:
        Views(const std::vector<nb::handle>& arrays, const std::vector<Leaf>& leaves, int64_t batch)
            : views_(arrays.size()) {
            for (size_t at = 0; at < arrays.size(); ++at) {
                if (PyObject_GetBuffer(arrays[at].ptr(), &views_[at], PyBUF_CONTIG_RO) != 0) throw nb::python_error();
                if (static_cast<size_t>(views_[at].len) != leaves.at(at).row() * static_cast<size_t>(batch))
                    throw nb::type_error("an array of a recording has another shape or dtype");
            }
        }
        ~Views() {
            for (Py_buffer& view : views_) PyBuffer_Release(&view);
        }
        const std::byte* data(size_t at) const { return static_cast<const std::byte*>(views_[at].buf); }

    private:
        std::vector<Py_buffer> views_;
    };

    template <class Body>
    void run(const Body& body) {
        hopfuse::Execution execution{1};
        const Call stop(execution);  // raises if the call is cancelled; a replay itself is not stopped
        const nb::gil_scoped_release release;
        body();
    }

    static Shape batch_shape(const Leaf& leaf, int64_t batch) {
        Shape shape = leaf.shape;
        shape[0] = batch;
        return shape;
    }

    void pad_into(native::Queue& queue, const native::Array<std::byte>& to, const native::Array<std::byte>& from,
                  size_t row, int64_t first, int64_t count) const {
        if (row == 0) return;
        const auto at = [row](std::byte* base, int64_t number) { return base + static_cast<size_t>(number) * row; };
        queue.copy_bytes(to.data(), at(from.data(), first), static_cast<size_t>(count) * row);
        for (int64_t number = count; number < rows_; ++number)
            queue.copy_bytes(at(to.data(), number), at(from.data(), first + count - 1), row);
    }

    void leave() {
        run_->queue = nullptr;
        run_.reset();
        leave_queue();
    }

    std::shared_ptr<native::Device> device_;
    std::vector<Leaf> inputs_, outputs_;
    int64_t rows_ = 0;
    size_t num_statuses_ = 0;
    bool has_run_ = false;
    std::shared_ptr<RecordingRun> run_;
    mutable std::optional<native::Recording> work_;
};

native::Array<std::byte> memory_of(const DeviceArray& array) {
    return {array.owner, static_cast<std::byte*>(array.data), array.nbytes()};
}

size_t row_of(const DeviceArray& array) { return Leaf{array.shape, array.dtype}.row(); }

DeviceArray take_rows(const std::shared_ptr<native::Device>& device, const DeviceArray& array,
                      const std::vector<int64_t>& rows) {
    DeviceCall call(queue_of_thread(device));
    call.order(array);
    DeviceArray made = array;
    made.shape.at(0) = static_cast<int64_t>(rows.size()), made.stream = call.place().stream;
    call.run([&](native::Queue& queue) {
        const native::Array<std::byte> taken = queue.take_rows(memory_of(array), row_of(array), rows);
        made.owner = taken.owner(), made.data = taken.data();
    });
    return made;
}

void put_rows(const std::shared_ptr<native::Device>& device, const DeviceArray& target,
              const std::vector<int64_t>& rows, const DeviceArray& source) {
    DeviceCall call(queue_of_thread(device));
    call.order(target), call.order(source);
    if (row_of(target) == 0) return;
    call.run([&](native::Queue& queue) { queue.put_rows(memory_of(target), row_of(target), rows, memory_of(source)); });
}

}  // namespace

const Binding device_recording_binding("device_recording", [](Module& m) {
    nb::class_<SharedMemory>(m, "RecordingMemory", "Memory of recordings that are never replayed at the same time.")
        .def(
            "__init__",
            [](SharedMemory* made, std::shared_ptr<native::Device> device) {
                new (made) SharedMemory{native::recording_memory(std::move(device))};
            },
            nb::arg("device"))
        .def_prop_ro("nbytes", [](const SharedMemory& held) { return native::recording_bytes(*held.memory); });
    nb::class_<DeviceRecording>(m, "DeviceRecording", "A core that is recorded for a batch size, and replayed for any.")
        .def(nb::init<std::shared_ptr<native::Device>, const SharedMemory&,
                      const std::vector<std::pair<Shape, nb::object>>&>(),
             nb::arg("device"), nb::arg("memory"), nb::arg("inputs"))
        .def("begin", &DeviceRecording::begin, nb::arg("records"), nb::arg("for_host"),
             nb::sig("def begin(self, records: bool, for_host: bool) -> list[DeviceArray]"),
             "Begin a run of the core on this thread, and return its inputs.")
        .def("end", &DeviceRecording::end, nb::arg("leaves"), "End a run with the arrays of its result.")
        .def("abandon", &DeviceRecording::abandon, "End a run in which something has raised.")
        .def_prop_ro("has_run", &DeviceRecording::has_run, "Whether the run before a recording is over.")
        .def("is_recorded", &DeviceRecording::is_recorded, nb::arg("for_host"))
        .def_prop_ro("rows", &DeviceRecording::rows, "The recorded batch size.")
        .def("on_host", &DeviceRecording::on_host, nb::arg("arrays"), nb::arg("batch"),
             nb::sig("def on_host(self, arrays: Sequence[numpy.typing.NDArray[typing.Any]], batch: int) -> "
                     "tuple[list[numpy.typing.NDArray[typing.Any]], list[int]] | None"),
             "The results for NumPy arrays, and the queries that must be run without the recording.")
        .def("on_device", &DeviceRecording::on_device, nb::arg("arrays"), nb::arg("batch"),
             nb::sig("def on_device(self, arrays: Sequence[DeviceArray], batch: int) -> "
                     "tuple[list[DeviceArray], list[int]] | None"),
             "The results for arrays on the device, and the queries that must be run without the recording.");
    m.def("device_take_rows", &take_rows, nb::arg("device"), nb::arg("array"), nb::arg("rows"),
          "A copy of these rows, which may repeat.");
    m.def("device_put_rows", &put_rows, nb::arg("device"), nb::arg("target"), nb::arg("rows"), nb::arg("source"),
          "Copy row i of `source` to row rows[i] of `target`.");
});
