#include "threads.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "float_mode.h"

#include <pthread.h>
#include <signal.h>
#if defined(__linux__)
#include <sched.h>
#include <time.h>
#endif

namespace hopfuse {

Stopped::~Stopped() = default;

namespace {

constexpr auto spin_time = std::chrono::microseconds(20);
constexpr auto poll_time = std::chrono::milliseconds(20);  // at which a waiting caller looks at its stop flag

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Whether `ready` became true within the time for which waiting threads spin.
template <class Ready>
bool spin_until(const Ready& ready) {
    const auto end = std::chrono::steady_clock::now() + spin_time;
    do {
        for (int i = 0; i < 32; ++i) {
            if (ready()) return true;
            pause();
        }
    } while (std::chrono::steady_clock::now() < end);
    return false;
}

bool is_stopped(const Execution& execution) {
    if (execution.stop == nullptr) return false;
    if (execution.stop->poll != nullptr) execution.stop->poll(execution.stop);
    for (const StopFlag* flag = execution.stop; flag != nullptr; flag = flag->further)
        if (__atomic_load_n(flag->raised, __ATOMIC_RELAXED) != 0) return true;
    return false;
}

class Worker;

// One call of run_chunks, on the caller's stack. Threads take chunks until there are none; the caller then waits until those
// that took part have left.
class Job {
public:
    Job(int64_t count, int64_t chunk, const Execution& execution, ChunkBody body, const void* context)
        : execution_(execution), body_(body), context_(context), count_(count), chunk_(chunk) {}

    // Must not throw: on a thread of the pool nobody would catch it.
    void work(int thread) noexcept {
        try {
            for (;;) {
                const int64_t begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
                if (begin >= count_) return;
                if (is_stopped(execution_)) throw Stopped();
                body_(context_, begin, chunk_ < count_ - begin ? begin + chunk_ : count_, thread);
            }
        } catch (...) {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (error_ == nullptr) error_ = std::current_exception();
            next_.store(count_, std::memory_order_relaxed);
        }
    }

    // How many threads of the pool may still work; set before they are given the job.
    void expect(int threads) { busy_.store(threads, std::memory_order_relaxed); }
    void expect_one_less() { busy_.fetch_sub(1, std::memory_order_relaxed); }

    // The caller may destroy the job as soon as the lock is released.
    void leave() {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
    }

    // Waits for the others, which are among `workers`; throws what they or the caller met first.
    void finish(Worker* const* workers, int number);

private:
    const Execution execution_;
    const ChunkBody body_;
    const void* const context_;
    const int64_t count_, chunk_;
    std::atomic<int64_t> next_{0};
    std::atomic<int> busy_{0};
    std::mutex mutex_;
    std::condition_variable left_;
    std::exception_ptr error_;
};

// The processors of a thread of the pool; those of callers are their own. Linux leaves a thread where it is for milliseconds
// although another processor is idle: one that was just woken, on the processor of its waker, and one that another program
// has preempted. A call of two threads then takes longer than one of one. So the waker leaves out its own processor while the
// thread wakes up, and a caller that is about to sleep moves a preempted thread to the processor that it leaves.
class Processors {
public:
#if defined(__linux__)
    // Called by the thread, before all others.
    void own() {
        thread_ = pthread_self();
        if (pthread_getcpuclockid(thread_, &clock_) != 0) clock_ = CLOCK_MONOTONIC;  // as if it ran always
    }

    // Called by a waker.
    void leave_out_mine() {
        const int mine = sched_getcpu();
        if (!may_use(mine)) return;
        cpu_set_t others = allowed_;
        CPU_CLR(size_t(mine), &others);
        is_changed_ = CPU_COUNT(&others) > 0 && set(others);
    }

    // Called by the thread when it is awake.
    void restore() {
        if (is_changed_) set(allowed_);
        is_changed_ = false;
    }

    // Called by a caller, while the thread runs a chunk of it: has it been preempted, its CPU time stands still.
    void take_mine() {
        const int64_t before = cpu_time();
        for (int i = 0; i < 64; ++i) pause();
        const int mine = sched_getcpu();
        if (cpu_time() != before || !may_use(mine)) return;
        cpu_set_t here;
        CPU_ZERO(&here);
        CPU_SET(size_t(mine), &here);
        if (set(here)) set(allowed_);
    }

private:
    pthread_t thread_{};
    clockid_t clock_ = CLOCK_MONOTONIC;
    cpu_set_t allowed_;
    bool is_changed_ = false;

    bool set(const cpu_set_t& allowed) { return pthread_setaffinity_np(thread_, sizeof allowed, &allowed) == 0; }

    // Reads which processors the thread may use.
    bool may_use(int processor) {
        return processor >= 0 && processor < CPU_SETSIZE &&
               pthread_getaffinity_np(thread_, sizeof allowed_, &allowed_) == 0 &&
               CPU_ISSET(size_t(processor), &allowed_);
    }

    int64_t cpu_time() const {
        timespec time{};
        clock_gettime(clock_, &time);
        return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
    }
#else
    void own() {}
    void leave_out_mine() {}
    void restore() {}
    void take_mine() {}
#endif
};

// A thread of the pool. It takes `job` by an atomic exchange; a caller that finds the job still there takes it back.
class Worker {
public:
    void give(Job* job, int thread) {
        const std::lock_guard<std::mutex> lock(mutex_);
        thread_ = thread;
        job_.store(job, std::memory_order_release);
        if (!sleeps_ || woken_) return;
        woken_ = true;
        processors_.leave_out_mine();
        wake_.notify_one();
    }

    bool take_back(Job* job) { return job_.compare_exchange_strong(job, nullptr, std::memory_order_acq_rel); }

    // Waits for a job, which may be taken back before the return: then null. A thread that woke too late for a job spins for
    // the next, which comes soon in a walk of many short passes.
    Job* take() {
        const auto is_given = [this] { return job_.load(std::memory_order_acquire) != nullptr; };
        while (!spin_until(is_given)) {
            std::unique_lock<std::mutex> lock(mutex_);
            if (is_given()) break;
            sleeps_ = true;
            wake_.wait(lock, [this] { return woken_; });
            processors_.restore();
            sleeps_ = woken_ = false;
        }
        return may_throw() ? job_.exchange(nullptr, std::memory_order_acq_rel) : nullptr;
    }

    // Called on the thread itself.
    void begin() { processors_.own(); }
    void work(Job* job) {
        running_.store(job, std::memory_order_relaxed);
        job->work(thread_);
        running_.store(nullptr, std::memory_order_relaxed);
    }

    // Called by a caller that is about to sleep until its job is done.
    void take_my_processor(const Job* job) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (running_.load(std::memory_order_relaxed) == job) processors_.take_mine();
    }

private:
    std::atomic<Job*> job_{nullptr};
    std::atomic<const Job*> running_{nullptr};
    int thread_ = 0;  // in the job's numbering; written before the job
    bool sleeps_ = false;
    bool woken_ = false;  // it was given a job since it fell asleep, even if that was taken back
    bool may_throw_ = false;
    Processors processors_;
    std::mutex mutex_;
    std::condition_variable wake_;

    // Whether this thread can throw. It makes ready for that when some blocks are known to be free; until then it leaves its
    // jobs to their callers.
    bool may_throw() {
        if (may_throw_) return true;
        if (has_free_blocks()) {
            ready_to_throw();
            may_throw_ = true;
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return may_throw_;
    }

    // Frees a block of each small size, which the allocator then keeps for this thread: no other thread can take them.
    static bool has_free_blocks() {
        constexpr size_t step = 16, sizes = 64;
        void* blocks[sizes];
        bool are_free = true;
        for (size_t i = 0; i < sizes; ++i) {
            blocks[i] = std::malloc(step * (i + 1));
            are_free = are_free && blocks[i] != nullptr;
        }
        for (void* block : blocks) std::free(block);
        return are_free;
    }
};

void Job::finish(Worker* const* workers, int number) {
    const auto done = [this] { return busy_.load(std::memory_order_acquire) == 0; };
    if (!spin_until(done))
        for (int i = 0; i < number && !done(); ++i) workers[i]->take_my_processor(this);
    std::unique_lock<std::mutex> lock(mutex_);
    while (!left_.wait_for(lock, poll_time, done)) {
        lock.unlock();
        is_stopped(execution_);  // for its poll: the others see the flag that it raises
        lock.lock();
    }
    if (error_ != nullptr) std::rethrow_exception(error_);
}

class Pool {
public:
    // Takes up to `wanted` idle threads; starts new ones while fewer than `most` exist.
    int acquire(Worker** workers, int wanted, int most) {
        int found = 0;
        const std::lock_guard<std::mutex> lock(mutex_);
        while (found < wanted && !idle_.empty()) {
            workers[found++] = idle_.back();
            idle_.pop_back();
        }
        for (; found < wanted && size_ < most; ++found) {
            Worker* made = start();
            if (made == nullptr) break;
            workers[found] = made;
            ++size_;
        }
        return found;
    }

    void release(Worker* worker) {
        const std::lock_guard<std::mutex> lock(mutex_);
        idle_.push_back(worker);  // cannot allocate: start() reserved the space
    }

    int size() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return size_;
    }

private:
    std::mutex mutex_;
    std::vector<Worker*> idle_;
    int size_ = 0;

    // Null if the system has no thread or no memory.
    Worker* start() {
        Worker* worker = nullptr;
        try {
            idle_.reserve(size_t(size_) + 1);
            worker = new Worker;
            const SignalsBlocked while_starting;
            std::thread([this, worker] { run(worker); }).detach();
            return worker;
        } catch (const std::system_error&) {
        } catch (const std::bad_alloc&) {
        }
        delete worker;
        return nullptr;
    }

    // A new thread inherits the mask of signals: they are handled by the program's own threads.
    struct SignalsBlocked {
        sigset_t before;

        SignalsBlocked() {
            sigset_t every;
            sigfillset(&every);
            pthread_sigmask(SIG_SETMASK, &every, &before);
        }
        ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    };

    void run(Worker* worker) {
        worker->begin();
        const FloatMode mode;  // a new thread inherits that of the thread that started it
        for (;;) {
            Job* const job = worker->take();
            if (job == nullptr) continue;
            worker->work(job);
            release(worker);  // before the caller continues, so that its next job finds this thread
            job->leave();
        }
    }
};

// Never destroyed, because its threads outlive static objects. A forked child has none of them and starts a new pool.
alignas(Pool) unsigned char storage[sizeof(Pool)];

void make_pool() { new (storage) Pool; }

Pool& pool() {
    static const bool made = [] {
        make_pool();
        pthread_atfork(nullptr, nullptr, make_pool);
        return true;
    }();
    static_cast<void>(made);
    return *std::launder(reinterpret_cast<Pool*>(storage));
}

}  // namespace

void ready_to_throw() {
    volatile int exceptions = std::uncaught_exceptions();  // volatile, as compilers think that the call has no effect
    static_cast<void>(exceptions);
}

void check_stop(const Execution& execution) {
    if (is_stopped(execution)) throw Stopped();
}

void run_chunks(int64_t count, int64_t chunk, const Execution& execution, ChunkBody body, const void* context) {
    if (count <= 0) return;
    const int64_t helpers = (count - 1) / chunk;  // that could have a chunk, beside the caller
    if (execution.threads <= 1 || helpers == 0) {
        for (int64_t begin = 0; begin < count; begin += chunk) {
            check_stop(execution);
            body(context, begin, chunk < count - begin ? begin + chunk : count, 0);
        }
        return;
    }
    constexpr int most_workers = 1023;
    Worker* workers[most_workers];
    const int64_t useful = helpers < execution.threads - 1 ? helpers : execution.threads - 1;
    const int wanted = useful < most_workers ? int(useful) : most_workers;
    Job job(count, chunk, execution, body, context);
    const int found = pool().acquire(workers, wanted, execution.threads - 1);
    job.expect(found);
    for (int i = 0; i < found; ++i) workers[i]->give(&job, i + 1);
    job.work(0);
    for (int i = 0; i < found; ++i) {
        if (!workers[i]->take_back(&job)) continue;  // it has started, and leaves the job by itself
        pool().release(workers[i]);
        job.expect_one_less();
    }
    job.finish(workers, found);
}

int pool_size() { return pool().size(); }

}  // namespace hopfuse
