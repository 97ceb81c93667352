#include "threads.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <signal.h>
#define HOPFUSE_HAS_FORK
#endif
#if defined(__linux__)
#include <sched.h>
#include <time.h>
#endif

namespace hopfuse {

namespace {

constexpr auto spin_time = std::chrono::microseconds(20);

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

// The processors on which a thread may run. Linux often wakes a thread on the processor of the waking thread, and leaves it
// there for milliseconds although another is idle; the same holds for a thread that another program has preempted. So the
// processor of the waking thread is excluded while a worker is woken, and a thread that is about to sleep until another has
// finished a chunk moves that one to its own processor if it does not run. Calls for a thread must not overlap.
#if defined(__linux__)
class Processors {
public:
    // Called by the thread itself, before the other functions.
    void own() {
        thread_ = pthread_self();
        if (pthread_getcpuclockid(thread_, &clock_) != 0) clock_ = CLOCK_MONOTONIC;  // as if it ran always
    }

    // Called by the waking thread: excludes its processor, unless this thread may not run on any other.
    void forbid_callers() {
        const int caller = sched_getcpu();
        if (caller < 0 || caller >= CPU_SETSIZE) return;
        if (pthread_getaffinity_np(thread_, sizeof allowed_, &allowed_) != 0) return;
        cpu_set_t others = allowed_;
        CPU_CLR(size_t(caller), &others);
        changed_ = CPU_COUNT(&others) > 0 && pthread_setaffinity_np(thread_, sizeof others, &others) == 0;
    }

    // Called by the thread itself when it is awake.
    void allow_callers() {
        if (changed_) pthread_setaffinity_np(thread_, sizeof allowed_, &allowed_);
        changed_ = false;
    }

    // Called by a thread that is about to sleep: moves this thread to its processor if this one has been preempted.
    void take_over() const {
        const int64_t before = cpu_time();
        for (int i = 0; i < 64; ++i) pause();
        if (cpu_time() != before) return;
        const int caller = sched_getcpu();
        cpu_set_t allowed;
        if (caller < 0 || caller >= CPU_SETSIZE) return;
        if (pthread_getaffinity_np(thread_, sizeof allowed, &allowed) != 0 || !CPU_ISSET(size_t(caller), &allowed))
            return;
        cpu_set_t here;
        CPU_ZERO(&here);
        CPU_SET(size_t(caller), &here);
        if (pthread_setaffinity_np(thread_, sizeof here, &here) == 0)
            pthread_setaffinity_np(thread_, sizeof allowed, &allowed);
    }

private:
    pthread_t thread_{};
    clockid_t clock_ = CLOCK_MONOTONIC;
    cpu_set_t allowed_;
    bool changed_ = false;

    int64_t cpu_time() const {
        timespec time{};
        clock_gettime(clock_, &time);
        return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
    }
};
#else
struct Processors {
    void own() {}
    void forbid_callers() {}
    void allow_callers() {}
    void take_over() const {}
};
#endif

struct Worker;

// One call of run_chunks, on the caller's stack.
struct Job {
    const ChunkBody body;
    const void* const context;
    const int64_t count, chunk;
    std::atomic<int64_t> next{0};
    std::atomic<int> busy{0};        // threads that took the job and have not left it
    std::atomic<bool> waits{false};  // the caller has no more chunks
    std::atomic<bool> moved{false};
    Processors caller;
    std::mutex mutex;
    std::condition_variable left;

    Job(ChunkBody run, const void* with, int64_t all, int64_t each)
        : body(run), context(with), count(all), chunk(each) {
        caller.own();
    }

    void work(int thread) {
        for (;;) {
            const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
            if (begin >= count) return;
            body(context, begin, chunk < count - begin ? begin + chunk : count, thread);
        }
    }

    // Called by a worker that finds no more chunks.
    void see_caller() {
        const auto done = [&] { return waits.load(std::memory_order_relaxed); };
        if (!spin_until(done) && !moved.exchange(true, std::memory_order_relaxed)) caller.take_over();
    }

    // The caller may destroy the job as soon as the lock is released.
    void leave() {
        const std::lock_guard<std::mutex> lock(mutex);
        if (busy.fetch_sub(1, std::memory_order_acq_rel) == 1) left.notify_one();
    }

    void wait(Worker* const* workers, int number);
};

// A thread of the pool. It takes `job` by an atomic exchange; a caller that finds the job still there takes it back.
struct Worker {
    std::atomic<Job*> job{nullptr};
    std::atomic<const Job*> running{nullptr};
    int index = 0;  // in the job's numbering; written before the job
    bool sleeps = false;
    bool woken = false;  // it was given a job since it fell asleep, even if that was taken back
    Processors processors;
    std::mutex mutex;
    std::condition_variable wake;

    void give(Job* given, int thread) {
        const std::lock_guard<std::mutex> lock(mutex);
        index = thread;
        job.store(given, std::memory_order_release);
        if (!sleeps || woken) return;
        woken = true;
        processors.forbid_callers();
        wake.notify_one();
    }

    bool take_back(Job* given) { return job.compare_exchange_strong(given, nullptr, std::memory_order_acq_rel); }

    // A thread that woke too late for a job spins for the next, which comes soon in a walk of many short passes.
    void wait() {
        const auto given = [&] { return job.load(std::memory_order_acquire) != nullptr; };
        while (!spin_until(given)) {
            std::unique_lock<std::mutex> lock(mutex);
            if (given()) return;
            sleeps = true;
            wake.wait(lock, [&] { return woken; });
            processors.allow_callers();
            sleeps = woken = false;
        }
    }
};

void Job::wait(Worker* const* workers, int number) {
    const auto done = [&] { return busy.load(std::memory_order_acquire) == 0; };
    waits.store(true, std::memory_order_relaxed);
    if (!spin_until(done)) {
        for (int i = 0; i < number && !done(); ++i) {
            const std::lock_guard<std::mutex> lock(workers[i]->mutex);
            if (workers[i]->running.load(std::memory_order_relaxed) == this) workers[i]->processors.take_over();
        }
    }
    std::unique_lock<std::mutex> lock(mutex);
    left.wait(lock, done);
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
        try {
            idle_.reserve(size_t(size_) + 1);
            Worker* worker = new Worker;
            try {
#if defined(HOPFUSE_HAS_FORK)
                sigset_t every, before;  // signals are handled by the program's own threads
                sigfillset(&every);
                pthread_sigmask(SIG_SETMASK, &every, &before);
#endif
                try {
                    std::thread([this, worker] { run(worker); }).detach();
                } catch (...) {
#if defined(HOPFUSE_HAS_FORK)
                    pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
                    throw;
                }
#if defined(HOPFUSE_HAS_FORK)
                pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
            } catch (...) {
                delete worker;
                throw;
            }
            return worker;
        } catch (const std::system_error&) {
            return nullptr;
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }

    void run(Worker* worker) {
        worker->processors.own();
        for (;;) {
            worker->wait();
            Job* job = worker->job.exchange(nullptr, std::memory_order_acq_rel);
            if (job == nullptr) continue;  // taken back
            worker->running.store(job, std::memory_order_relaxed);
            job->work(worker->index);
            worker->running.store(nullptr, std::memory_order_relaxed);
            job->see_caller();
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
#if defined(HOPFUSE_HAS_FORK)
        pthread_atfork(nullptr, nullptr, make_pool);
#endif
        return true;
    }();
    static_cast<void>(made);
    return *std::launder(reinterpret_cast<Pool*>(storage));
}

}  // namespace

void run_chunks(int64_t count, int64_t chunk, int threads, ChunkBody body, const void* context) {
    if (count <= 0) return;
    const int64_t chunks = (count + chunk - 1) / chunk;
    if (threads <= 1 || chunks == 1) return body(context, 0, count, 0);
    constexpr int most_workers = 1023;
    Worker* workers[most_workers];
    const int64_t useful = chunks - 1 < threads - 1 ? chunks - 1 : threads - 1;
    const int wanted = useful < most_workers ? int(useful) : most_workers;
    Job job(body, context, count, chunk);
    const int found = pool().acquire(workers, wanted, threads - 1);
    job.busy.store(found, std::memory_order_relaxed);
    for (int i = 0; i < found; ++i) workers[i]->give(&job, i + 1);
    job.work(0);
    for (int i = 0; i < found; ++i) {
        if (!workers[i]->take_back(&job)) continue;  // it has started, and leaves the job by itself
        pool().release(workers[i]);
        job.busy.fetch_sub(1, std::memory_order_relaxed);
    }
    job.wait(workers, found);
}

int pool_size() { return pool().size(); }

}  // namespace hopfuse
