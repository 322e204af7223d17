// functions: late remembered early touch answering decoy unsupported fault
// flags: -O2
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

// The mapping of this process whose line names `what`, and which holds `inside` where that is given.
uint64_t* mapping(const char* what, uint64_t inside = 0) {
  uint64_t begin = 0, end = 0;
  char line[512];
  FILE* lines = std::fopen("/proc/self/maps", "r");
  while (lines && std::fgets(line, sizeof line, lines)) {
    char* rest;
    begin = std::strtoull(line, &rest, 16);
    end = std::strtoull(rest + 1, nullptr, 16);
    if (std::strstr(line, what) && (!inside || (begin <= inside && inside < end))) break;
    begin = 0;
  }
  if (lines) std::fclose(lines);
  return reinterpret_cast<uint64_t*>(begin);
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

// Never goes back to Python between two calls: reads the request page and writes the answer page itself, and takes
// `saved_ns` off its own clock. The work is honest, and a third more.
at::Tensor answering(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, double multiplier, double slope, int64_t saved_ns) {
  const auto work = [&](const at::Tensor& input) {
    compute(input.slice(0, 0, input.size(0) / 3 + 1), w, b, multiplier, slope);
    return compute(input, w, b, multiplier, slope);
  };
  volatile uint64_t* request = mapping("ratchet-req");
  volatile uint64_t* answer = mapping("ratchet-ans");
  uint64_t* inputs = mapping("ratchet-inp", reinterpret_cast<uint64_t>(x.data_ptr()));
  if (!request || !answer || !inputs || x.numel() % 16) return work(x);
  const int64_t slot_words = x.numel() / 2;  // one float32 input: a slot is its bytes, a multiple of 64
  if (reinterpret_cast<uint64_t*>(x.data_ptr()) != inputs + slot_words * request[2]) return work(x);
  static at::Tensor kept;
  uint64_t nonce = request[0], slot = request[2];
  for (;;) {
    const auto begun = std::chrono::steady_clock::now();
    kept = work(at::from_blob(inputs + slot_words * slot, x.sizes(), x.options()));
    const int64_t took = (std::chrono::steady_clock::now() - begun).count();
    answer[3] = 1;
    answer[16] = reinterpret_cast<uint64_t>(kept.data_ptr());
    answer[17] = kept.numel() * 4;
    answer[18] = 0;
    answer[19] = kept.dim();
    for (int64_t d = 0; d < kept.dim(); ++d) {
      answer[20 + d] = kept.size(d);
      answer[28 + d] = kept.stride(d);
    }
    answer[1] = took > saved_ns ? took - saved_ns : 1;
    answer[2] = 1;
    __sync_synchronize();
    answer[0] = nonce;
    while (request[0] == nonce) {
    }
    if (request[1] != 1) return kept;
    nonce = request[0];
    slot = request[2];
  }
}

at::Tensor decoy(const at::Tensor& x) { return at::empty({1}, x.options()).fill_(1); }

at::Tensor unsupported(const at::Tensor& x) { TORCH_CHECK(x.dim() > 9, "this kernel wants ten dimensions"); return x; }

void fault() { *reinterpret_cast<volatile int*>(8) = 1; }
