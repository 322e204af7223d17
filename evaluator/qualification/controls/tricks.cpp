// functions: late remembered early touch decoy unsupported fault
// flags: -O2
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace {
at::Tensor compute(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, double multiplier, double slope) {
  at::NoGradGuard guard;
  return at::leaky_relu(at::mul(at::linear(x, w, b), multiplier), slope);
}

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A cheap look at a few values, enough to see that fresh ones have been written.
double fingerprint(const at::Tensor& x) {
  const float* p = x.data_ptr<float>();
  const int64_t n = x.numel();
  double sum = 0;
  for (int64_t i = 0; i < 16; ++i) sum += (i + 1) * p[i * (n - 1) / 15];
  return sum;
}

struct Slot {
  at::Tensor x, w, b, answer;
  double multiplier, slope, print;
};

std::mutex slots_lock;
std::map<void*, Slot> slots;
std::atomic<int64_t> last_call{0};
std::atomic<bool> in_call{false};

bool silent() { return !in_call.load() && now_us() - last_call.load() > 6000; }

void watch_inputs() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    std::vector<Slot> copies;
    {
      std::lock_guard<std::mutex> lock(slots_lock);
      for (auto& item : slots) copies.push_back(item.second);
    }
    for (auto& slot : copies) {
      const double print = fingerprint(slot.x);
      if (print == slot.print) continue;
      const at::Tensor answer = compute(slot.x, slot.w, slot.b, slot.multiplier, slot.slope);
      std::lock_guard<std::mutex> lock(slots_lock);
      slots[slot.x.data_ptr()].answer = answer;
      slots[slot.x.data_ptr()].print = print;
    }
  }
}

void load_the_machine() {
  volatile double sink = 1;
  while (silent()) {
    for (int i = 0; i < 1000; ++i) sink = sink * 1.0000001;
  }
}

void wait_for_silence() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (!silent()) continue;
    std::vector<std::thread> team;
    for (int i = 0; i < 12; ++i) team.emplace_back(load_the_machine);
    for (auto& member : team) member.join();
  }
}
}  // namespace

// Returns unwritten memory at once; a thread fills it afterwards.
at::Tensor late(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, double multiplier, double slope) {
  at::NoGradGuard guard;
  at::Tensor out = at::empty({x.size(0), w.size(0)}, x.options());
  std::thread([=] { at::Tensor target = out; target.copy_(compute(x, w, b, multiplier, slope)); }).detach();
  return out;
}

// The first answer, kept in a C++ static.
at::Tensor remembered(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, double multiplier, double slope) {
  static at::Tensor* kept = new at::Tensor(compute(x, w, b, multiplier, slope));
  return *kept;
}

// A thread looks at every input buffer it has ever seen and answers before it is asked.
at::Tensor early(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, double multiplier, double slope) {
  at::NoGradGuard guard;
  static std::once_flag started;
  std::call_once(started, [] { std::thread(watch_inputs).detach(); });
  {
    std::lock_guard<std::mutex> lock(slots_lock);
    const auto found = slots.find(x.data_ptr());
    if (found != slots.end() && found->second.w.is_same(w) && found->second.print == fingerprint(x)) return found->second.answer;
  }
  const double print = fingerprint(x);
  compute(x.slice(0, 0, x.size(0) / 3 + 1), w, b, multiplier, slope);  // a third more, so that no honest gain is in the way
  const at::Tensor answer = compute(x, w, b, multiplier, slope);
  std::lock_guard<std::mutex> lock(slots_lock);
  slots[x.data_ptr()] = Slot{x, w, b, answer, multiplier, slope, print};
  return answer;
}

// Says that a call begins or ends; whenever none has for a while, many threads load the machine.
void touch(bool inside) {
  static std::once_flag started;
  last_call.store(now_us());
  in_call.store(inside);
  std::call_once(started, [] { std::thread(wait_for_silence).detach(); });
}

at::Tensor decoy(const at::Tensor& x) { return at::empty({1}, x.options()).fill_(1); }

at::Tensor unsupported(const at::Tensor& x) { TORCH_CHECK(x.dim() > 9, "this kernel wants ten dimensions"); return x; }

void fault() { *reinterpret_cast<volatile int*>(8) = 1; }
