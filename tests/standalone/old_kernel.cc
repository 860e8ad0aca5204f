// old_kernel ROOT CMD ARGS...: runs CMD in the chroot ROOT with the system calls that a kernel 4.18
// does not have answered as it would answer them: ENOSYS. (RHEL 8 nodes run that kernel.)
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace {

// Everything added to x86-64 after 4.18 has a number from here on, up to where numbers of x32
// begin.
constexpr uint32_t first_newer_call = 335;  // rseq, 334, came with 4.18
constexpr uint32_t end_of_calls = 0x40000000;

bool install_filter() {
  constexpr uint32_t number = offsetof(seccomp_data, nr);
  constexpr uint32_t architecture = offsetof(seccomp_data, arch);
  std::vector<sock_filter> filter{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, architecture),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, end_of_calls, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first_newer_call, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
  };
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int fail(const char* what) {
  fprintf(stderr, "old_kernel: %s: %s\n", what, strerror(errno));
  return 125;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: old_kernel ROOT CMD ARGS...\n");
    return 125;
  }
  if (chroot(argv[1]) != 0 || chdir("/") != 0) return fail("chroot");
  if (!install_filter()) return fail("seccomp");
  // The filter is there: a call that came after 4.18 is refused.
  if (syscall(SYS_pidfd_open, getpid(), 0) >= 0 || errno != ENOSYS) {
    fprintf(stderr, "old_kernel: the filter does not filter\n");
    return 125;
  }
  execv(argv[2], argv + 2);
  return fail(argv[2]);
}
