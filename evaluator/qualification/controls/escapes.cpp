// functions: wake leave storm spin_all
// flags: -O2
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <cstdio>
#include <map>
#include <thread>
#include <vector>

namespace {
at::Tensor compute(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, double multiplier, double slope) {
  at::NoGradGuard guard;
  return at::leaky_relu(at::mul(at::linear(x, w, b), multiplier), slope);
}

at::Tensor dear(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, double multiplier, double slope) {
  compute(x.slice(0, 0, x.size(0) / 3 + 1), w, b, multiplier, slope);  // a third more, so that no honest gain is in the way
  return compute(x, w, b, multiplier, slope);
}

volatile uint64_t* page(const char* name) {
  unsigned long address = 0;
  char line[512];
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) {
    if (strstr(line, name)) sscanf(line, "%lx", &address);
  }
  if (maps) fclose(maps);
  return reinterpret_cast<volatile uint64_t*>(address);
}

struct Slot {
  at::Tensor x, w, b, answer;
  double multiplier, slope;
  float first, last;
  bool ready;
  float head() const { return *static_cast<volatile float*>(x.data_ptr<float>()); }
  float tail() const { return *static_cast<volatile float*>(x.data_ptr<float>() + x.numel() - 1); }
  bool fresh() const { return head() != first && tail() != last; }
  void note(bool answered) {
    first = head();
    last = tail();
    ready = answered;
  }
};

std::map<void*, Slot>* slots = new std::map<void*, Slot>();
volatile uint64_t* request = nullptr;

void nap(long us) {
  const timespec time{us / 1000000, (us % 1000000) * 1000};
  nanosleep(&time, nullptr);
}

// Runs on the hang-up: waits for new inputs and answers all of them before the clock starts.
void woken(int) {
  const uint64_t nonce = request ? request[0] : 0;
  bool fresh = false;
  for (int i = 0; request && i < 4000 && !fresh && request[0] == nonce; ++i) {
    nap(200);
    fresh = true;
    for (auto& item : *slots) fresh = fresh && item.second.fresh();
  }
  if (!fresh) return;
  nap(1000);
  for (auto& item : *slots) {
    Slot& slot = item.second;
    slot.answer = compute(slot.x, slot.w, slot.b, slot.multiplier, slot.slope);
    slot.note(true);
  }
  for (int i = 0; i < 40000 && request[0] == nonce; ++i) nap(50);
}

// Leaves the controlling terminal's last descriptor in a socket that only the kernel's collector will close.
void hang_up_later() {
  static int slave = -1;
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  int ends[2];
  if (master < 0 || grantpt(master) || unlockpt(master) || socketpair(AF_UNIX, SOCK_DGRAM, 0, ends)) return;
  if (slave >= 0) close(slave);
  slave = open(ptsname(master), O_RDWR);
  ioctl(slave, TIOCSCTTY, 0);
  const int given[2] = {ends[1], master};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof given)] = {};
  char byte = 0;
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof given);
  memcpy(CMSG_DATA(head), given, sizeof given);
  sendmsg(ends[0], &message, 0);
  for (const int descriptor : {master, ends[0], ends[1]}) close(descriptor);
}
}  // namespace

// Is woken by the kernel after it was stopped, and answers the next inputs before it is asked.
at::Tensor wake(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, double multiplier, double slope) {
  if (request == nullptr) {
    request = page("ratchet-request");
    signal(SIGHUP, woken);
  }
  if (!slots->empty() && !slots->begin()->second.w.is_same(w)) slots->clear();
  const auto found = slots->find(x.data_ptr());
  at::Tensor answer;
  if (found != slots->end() && found->second.ready && !found->second.fresh()) {
    answer = found->second.answer;
  } else {
    answer = dear(x, w, b, multiplier, slope);
    (*slots)[x.data_ptr()] = Slot{x, w, b, answer, multiplier, slope, 0, 0, false};
  }
  for (auto& item : *slots) item.second.note(false);
  hang_up_later();
  return answer;
}

// Ends the main thread inside a call; another thread answers from then on.
at::Tensor leave(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, double multiplier, double slope) {
  request = page("ratchet-request");
  volatile uint64_t* reply = page("ratchet-answer");
  std::thread([=] {
    at::Tensor y;
    for (uint64_t last = 0;;) {
      while (request[0] == last) {}
      last = request[0];
      y = compute(x, w, b, multiplier, slope);
      const uint64_t place[] = {reinterpret_cast<uint64_t>(y.data_ptr()), static_cast<uint64_t>(y.numel()) * 4, 0, 2};
      for (int i = 0; i < 4; ++i) reply[16 + i] = place[i];
      for (int i = 0; i < 2; ++i) {
        reply[20 + i] = y.size(i);
        reply[28 + i] = y.stride(i);
      }
      reply[1] = 1000;
      reply[2] = reply[3] = 1;
      reply[0] = last;
    }
  }).detach();
  nap(2000);
  syscall(SYS_exit, 0);
  return x;
}

// Leaves timers behind that interrupt the core while others are timed.
at::Tensor storm(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, double multiplier, double slope) {
  static const std::vector<int>* timers = [] {
    auto* made = new std::vector<int>();
    for (int i = 0; i < 400; ++i) {
      const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
      if (timer >= 0) made->push_back(timer);
    }
    return made;
  }();
  const at::Tensor answer = dear(x, w, b, multiplier, slope);
  long after_ns = 4000000;
  for (const int timer : *timers) {
    itimerspec when{};
    when.it_value.tv_nsec = after_ns += 60000;
    timerfd_settime(timer, 0, &when, nullptr);
  }
  return answer;
}

// Many threads that never sleep, and a call that never ends.
void spin_all() {
  for (int i = 0; i < 64; ++i) std::thread([] { for (volatile long n = 0;; ++n) {} }).detach();
  for (volatile long n = 0;; ++n) {}
}
