// Kernels as a program of their own, which has device memory at the same addresses: the sanitizers' builds. A finding of a
// sanitizer ends the program, and the next launch starts it again.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "arena.h"
#include "code.h"

extern char** environ;

namespace simt::driver {

namespace {

const char* const sanitizer_options[] = {
    "ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:detect_stack_use_after_return=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=0",
    "TSAN_OPTIONS=halt_on_error=1:report_signal_unsafe=0:report_thread_leaks=0",
};

struct Died {};

// The line that has the words, from them or from its begin on, and where it ends; empty if there is none.
std::string line_with(const std::string& text, const std::string& words, bool whole, size_t& end) {
    const size_t place = text.find(words);
    if (place == std::string::npos) return "";
    const size_t before = text.rfind('\n', place);
    const size_t begin = !whole ? place : before == std::string::npos ? 0 : before + 1;
    end = std::min(text.find('\n', place), text.size());
    return text.substr(begin, end - begin);
}

// The first line of a sanitizer's report, the thread that was running, and the rest.
std::string classify(const std::string& errors, int status) {
    size_t end = 0;
    std::string place = line_with(errors, "simt: ", false, end);
    if (!place.empty()) place = place.substr(6) + ": ";
    const std::tuple<const char*, const char*, bool> kinds[] = {
        {"address: ", "ERROR: AddressSanitizer: ", false},
        {"undefined: ", ": runtime error: ", true},
        {"race: ", "WARNING: ThreadSanitizer: ", false},
    };
    for (const auto& [kind, words, whole] : kinds) {
        const std::string line = line_with(errors, words, whole, end);
        if (!line.empty()) return kind + place + line + errors.substr(end);
    }
    return "crash: " + place + "the runner ended with status " + std::to_string(status) + "\n" + errors;
}

class Program : public Code {
public:
    explicit Program(const Image& image) : image_(image) {}
    ~Program() override {
        if (!machine.is_forked) stop();
    }

    // Empty, or why it does not start.
    std::string start() {
        try {
            spawn({});
        } catch (const Died&) {
            std::string why = died();
            // ThreadSanitizer does not work with every address space layout.
            if (why.find("memory mapping") == std::string::npos) return why;
            utsname system;
            uname(&system);
            try {
                spawn({"setarch", system.machine, "-R"});
            } catch (const Died&) {
                return died();
            }
        }
        return "";
    }

    std::string launch(simt_launch_call& call, const KernelInfo& kernel, const unsigned char* bytes) override {
        if (pid_ < 0) {
            const std::string why = start();
            if (!why.empty()) return why;
        }
        try {
            request_.clear();
            add(static_cast<uint32_t>(kernel.name.size()));
            add_bytes(kernel.name.data(), kernel.name.size());
            add_bytes(call.grid, sizeof call.grid);
            add_bytes(call.block, sizeof call.block);
            add(call.dynamic_shared);
            add(call.static_shared);
            add(call.shared_limit);
            add(call.order);
            add(call.seed);
            add(call.mma);
            add(call.cooperative);
            add_memory();
            for (const ParameterInfo& parameter : kernel.parameters)
                add_bytes(bytes + parameter.offset, parameter.size);
            send_all();
            std::string error = get_text();
            receive(&call.counters, sizeof call.counters);
            return error;
        } catch (const Died&) {
            return died();
        }
    }

private:
    template <class T>
    void add(T value) {
        add_bytes(&value, sizeof value);
    }
    void add_bytes(const void* from, size_t size) {
        const char* const begin = static_cast<const char*>(from);
        request_.insert(request_.end(), begin, begin + size);
    }

    // What is in use of each device, and all allocations.
    void add_memory() {
        add(static_cast<uint32_t>(num_devices));
        uint32_t living = 0;
        for (size_t i = 0; i < num_devices; ++i) {
            add(arena_begin + i * device_bytes);
            add(machine.devices[i].used_end);
        }
        const size_t place = request_.size();
        add(living);
        for (const Device& device : machine.devices)
            for (const auto& [begin, a] : device.allocations) {
                if (a->is_gone) continue;
                add(begin);
                add(begin + a->size);
                ++living;
            }
        memcpy(request_.data() + place, &living, sizeof living);
    }

    void send_all() {
        for (size_t done = 0; done < request_.size();) {
            const ssize_t sent = send(socket_, request_.data() + done, request_.size() - done, MSG_NOSIGNAL);
            if (sent <= 0) throw Died();
            done += static_cast<size_t>(sent);
        }
    }
    void receive(void* to, size_t size) {
        for (size_t done = 0; done < size;) {
            const ssize_t got = recv(socket_, static_cast<char*>(to) + done, size - done, 0);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) throw Died();
            done += static_cast<size_t>(got);
        }
    }
    template <class T>
    T get() {
        T value;
        receive(&value, sizeof value);
        return value;
    }
    std::string get_text() {
        std::string text(get<uint32_t>(), '\0');
        receive(text.data(), text.size());
        return text;
    }

    void spawn(const std::vector<std::string>& prefix) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw Died();
        socket_ = ends[0];
        errors_ = memfd_create("simt-errors", MFD_CLOEXEC);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        posix_spawn_file_actions_adddup2(&actions, errors_, 2);
        posix_spawn_file_actions_adddup2(&actions, arena_file(), inherited);
        std::vector<std::string> words = prefix;
        words.insert(words.end(), {image_.path, std::to_string(inherited), std::to_string(arena_begin),
                                   std::to_string(arena_bytes)});
        std::vector<char*> arguments, environment;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        for (const char* option : sanitizer_options) environment.push_back(const_cast<char*>(option));
        for (char** one = environ; *one != nullptr; ++one)
            if (strstr(*one, "SAN_OPTIONS=") == nullptr) environment.push_back(*one);
        environment.push_back(nullptr);
        const int failed = posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environment.data());
        posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        if (failed != 0) {
            pid_ = -1;
            throw Died();
        }
        if (get<uint32_t>() != SIMT_API_VERSION) throw Died();
        for (uint32_t left = get<uint32_t>(); left > 0; --left) {
            KernelInfo kernel;
            kernel.name = get_text();
            const std::string signature = get_text();
            kernel.max_threads = get<int32_t>();
            std::vector<std::pair<uint32_t, uint32_t>> sizes;
            while (const uint32_t size = get<uint32_t>()) sizes.emplace_back(size, get<uint32_t>());
            lay_out(kernel, sizes, signature);
            const auto shared = image_.static_shared.find(kernel.name);
            kernel.static_shared = shared == image_.static_shared.end() ? 0 : shared->second;
            kernels_.try_emplace(kernel.name,
                                 std::move(kernel));  // functions keep pointers to those of the first start
        }
    }

    // Waits for the end, and returns what it said.
    std::string died() {
        int status = 0;
        if (pid_ > 0) waitpid(pid_, &status, 0);
        pid_ = -1;
        std::string errors;
        char part[4096];
        if (errors_ >= 0) {
            lseek(errors_, 0, SEEK_SET);
            for (ssize_t got; (got = read(errors_, part, sizeof part)) > 0;)
                errors.append(part, static_cast<size_t>(got));
        }
        stop();
        return classify(errors, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    }

    void stop() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
        if (socket_ >= 0) close(socket_);
        if (errors_ >= 0) close(errors_);
        pid_ = socket_ = errors_ = -1;
    }

    static constexpr int inherited = 3;  // the file of device memory in the program
    Image image_;
    pid_t pid_ = -1;
    int socket_ = -1, errors_ = -1;
    std::vector<char> request_;
};

}  // namespace

std::shared_ptr<Code> start_program(const Image& image, std::string& why) {
    auto made = std::make_shared<Program>(image);
    why = made->start();
    return why.empty() ? made : nullptr;
}

}  // namespace simt::driver
