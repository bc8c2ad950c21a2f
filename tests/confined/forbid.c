/* forbid WHAT PROGRAM [ARGS...]: runs PROGRAM where the kernel refuses some system calls with EPERM, as the seccomp profile of a
 * container does. WHAT: `cma` (process_vm_readv and process_vm_writev) or `memfd` (memfd_create).
 * Exit status 77 when this process may not install such a filter. */
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

int main(int argc, char **argv) {
  if (argc < 3 || (strcmp(argv[1], "cma") && strcmp(argv[1], "memfd"))) {
    fprintf(stderr, "usage: forbid cma|memfd PROGRAM [ARGS...]\n");
    return 2;
  }
  const int cma = !strcmp(argv[1], "cma");
  const unsigned first = cma ? SYS_process_vm_readv : SYS_memfd_create;
  const unsigned second = cma ? SYS_process_vm_writev : SYS_memfd_create;
  /* Programs of one architecture only: the test starts nothing else. */
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) {
    perror("forbid: seccomp");
    return 77;
  }
  execvp(argv[2], argv + 2);
  perror(argv[2]);
  return 127;
}
