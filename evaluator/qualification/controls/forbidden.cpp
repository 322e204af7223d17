// functions: hook enter leave attach spread forge
// flags: -O2
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

namespace {
std::atomic<int64_t> shift{0};
int64_t begin = 0;

int64_t real_ns(clockid_t id) {
  timespec t;
  syscall(SYS_clock_gettime, id, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// The clock that everybody else in this process sees.
int slow_clock(clockid_t id, timespec* t) {
  const int64_t ns = real_ns(id) - shift.load();
  t->tv_sec = ns / 1000000000LL;
  t->tv_nsec = ns % 1000000000LL;
  return 0;
}

void* clock_code() { return dlsym(RTLD_DEFAULT, "clock_gettime"); }

std::string jump() {
  void* target = reinterpret_cast<void*>(&slow_clock);
  std::string code;
#if defined(__x86_64__)
  code.assign("\x48\xb8", 2).append(reinterpret_cast<char*>(&target), 8).append("\xff\xe0", 2);  // mov rax, target; jmp rax
#elif defined(__aarch64__)
  code.assign("\x50\x00\x00\x58\x00\x02\x1f\xd6", 8).append(reinterpret_cast<char*>(&target), 8);  // ldr x16, target; br x16
#endif
  return code;
}

bool patch_code() {
  const std::string code = jump();
  const uintptr_t at = reinterpret_cast<uintptr_t>(clock_code()), page = at & ~uintptr_t(4095);
  if (mprotect(reinterpret_cast<void*>(page), 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) return false;
  memcpy(reinterpret_cast<void*>(at), code.data(), code.size());
  __builtin___clear_cache(reinterpret_cast<char*>(at), reinterpret_cast<char*>(at + code.size()));
  return true;
}

bool patch_through_memory_file() {
  const std::string code = jump();
  const int file = open("/proc/self/mem", O_RDWR);
  if (file < 0) return false;
  const bool done = pwrite(file, code.data(), code.size(), reinterpret_cast<uintptr_t>(clock_code())) == static_cast<ssize_t>(code.size());
  close(file);
  __builtin___clear_cache(static_cast<char*>(clock_code()), static_cast<char*>(clock_code()) + code.size());
  return done;
}

int patched_slots = 0;

// Every loaded object's table slot that holds the clock's address is pointed at ours.
int patch_object(dl_phdr_info* info, size_t, void*) {
  const void* clock = clock_code();
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD && part.p_type != PT_GNU_RELRO) continue;
    if (!(part.p_flags & PF_W) && part.p_type != PT_GNU_RELRO) continue;
    const uintptr_t from = (info->dlpi_addr + part.p_vaddr) & ~uintptr_t(4095), to = info->dlpi_addr + part.p_vaddr + part.p_memsz;
    if (mprotect(reinterpret_cast<void*>(from), to - from, PROT_READ | PROT_WRITE)) continue;
    for (uintptr_t at = (info->dlpi_addr + part.p_vaddr + 7) & ~uintptr_t(7); at + 8 <= to; at += 8) {
      void** slot = reinterpret_cast<void**>(at);
      if (*slot == clock) *slot = reinterpret_cast<void*>(&slow_clock), ++patched_slots;
    }
  }
  return 0;
}

bool patch_table() {
  dl_iterate_phdr(patch_object, nullptr);
  return patched_slots > 0;
}
}  // namespace

bool hook(int64_t how) { return how == 0 ? patch_code() : how == 1 ? patch_table() : patch_through_memory_file(); }

void enter() { begin = real_ns(CLOCK_MONOTONIC); }

void leave() { shift += (real_ns(CLOCK_MONOTONIC) - begin) * 9 / 10; }

// Reaches for the process that judges: its registers, then its memory.
int64_t attach() {
  char stolen[64];
  iovec to{stolen, sizeof stolen}, from{reinterpret_cast<void*>(&shift), sizeof stolen};
  return ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr) + process_vm_readv(getppid(), &to, 1, &from, 1, 0);
}

int64_t spread(int64_t generations) {
  int64_t started = 0;
  for (int64_t i = 0; i < generations; ++i) {
    const pid_t child = fork();
    if (child == 0) { for (;;) pause(); }
    started += child > 0;
  }
  return started;
}

// Writes a line of one's own to every descriptor that may lead to whoever keeps the score.
int64_t forge(const std::string& line) {
  int64_t written = 0;
  for (int file = 3; file < 128; ++file) written += write(file, line.data(), line.size()) > 0;
  return written;
}
