//! Which system calls a command may make.
//!
//! What ordinary programs do with files, memory, processes and time of their own is allowed, and nothing else. Reasons for
//! what is left out, where programs might want it: `clone3` hides its flags from a filter; `memfd_create`, System V memory
//! and `io_setup` take memory that no limit counts; `io_uring` makes calls past the filter; `ptrace`, `process_vm_*` and
//! `pidfd_getfd` reach into other processes; keys, BPF, performance counters, `userfaultfd` and namespaces are where most
//! holes of the kernel were.

/// Pairs of number and name.
macro_rules! calls {
    ($($number:ident $name:literal)*) => { &[$((libc::$number, $name)),*] };
}

/// Allowed, whatever the arguments.
pub(super) const ALLOWED: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_utimensat,
    libc::SYS_umask,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_eventfd2,
    libc::SYS_signalfd4,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_gettime,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_delete,
    libc::SYS_getitimer,
    libc::SYS_setitimer,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_times,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_mincore,
    libc::SYS_brk,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_mlockall,
    libc::SYS_munlockall,
    libc::SYS_membarrier,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect,
    libc::SYS_get_mempolicy,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_sigaltstack,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_restart_syscall,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_setparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_getattr,
    libc::SYS_sched_setattr,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_rr_get_interval,
    libc::SYS_getcpu,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getpgid,
    libc::SYS_setpgid,
    libc::SYS_getsid,
    libc::SYS_setsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capget,
    libc::SYS_prctl,
    libc::SYS_getpriority,
    libc::SYS_setpriority,
    libc::SYS_ioprio_get,
    libc::SYS_ioprio_set,
    libc::SYS_getrlimit,
    libc::SYS_setrlimit,
    libc::SYS_prlimit64,
    libc::SYS_getrusage,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_getrandom,
    libc::SYS_socketpair,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_shutdown,
];

/// Allowed as well: what newer processors do without.
#[cfg(target_arch = "x86_64")]
pub(super) const ALLOWED_EARLIER: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_getdents,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_mknod,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_signalfd,
    libc::SYS_inotify_init,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_alarm,
    libc::SYS_pause,
    libc::SYS_time,
    libc::SYS_getpgrp,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const ALLOWED_EARLIER: &[libc::c_long] = &[];

/// What is refused under its name. A call that is neither here nor allowed is one that this kernel might not know.
const REFUSED: &[(libc::c_long, &str)] = calls![
    SYS_acct "acct"
    SYS_add_key "add_key"
    SYS_adjtimex "adjtimex"
    SYS_bpf "bpf"
    SYS_capset "capset"
    SYS_chroot "chroot"
    SYS_clock_adjtime "clock_adjtime"
    SYS_clock_settime "clock_settime"
    SYS_clone "clone"
    SYS_delete_module "delete_module"
    SYS_fanotify_init "fanotify_init"
    SYS_fanotify_mark "fanotify_mark"
    SYS_finit_module "finit_module"
    SYS_fsconfig "fsconfig"
    SYS_fsmount "fsmount"
    SYS_fsopen "fsopen"
    SYS_fspick "fspick"
    SYS_init_module "init_module"
    SYS_io_cancel "io_cancel"
    SYS_io_destroy "io_destroy"
    SYS_io_getevents "io_getevents"
    SYS_io_setup "io_setup"
    SYS_io_submit "io_submit"
    SYS_io_uring_enter "io_uring_enter"
    SYS_io_uring_register "io_uring_register"
    SYS_io_uring_setup "io_uring_setup"
    SYS_ioctl "ioctl"
    SYS_kcmp "kcmp"
    SYS_kexec_file_load "kexec_file_load"
    SYS_kexec_load "kexec_load"
    SYS_keyctl "keyctl"
    SYS_landlock_add_rule "landlock_add_rule"
    SYS_landlock_create_ruleset "landlock_create_ruleset"
    SYS_landlock_restrict_self "landlock_restrict_self"
    SYS_lookup_dcookie "lookup_dcookie"
    SYS_mbind "mbind"
    SYS_memfd_create "memfd_create"
    SYS_memfd_secret "memfd_secret"
    SYS_migrate_pages "migrate_pages"
    SYS_mount "mount"
    SYS_mount_setattr "mount_setattr"
    SYS_move_mount "move_mount"
    SYS_move_pages "move_pages"
    SYS_mq_getsetattr "mq_getsetattr"
    SYS_mq_notify "mq_notify"
    SYS_mq_open "mq_open"
    SYS_mq_timedreceive "mq_timedreceive"
    SYS_mq_timedsend "mq_timedsend"
    SYS_mq_unlink "mq_unlink"
    SYS_msgctl "msgctl"
    SYS_msgget "msgget"
    SYS_msgrcv "msgrcv"
    SYS_msgsnd "msgsnd"
    SYS_name_to_handle_at "name_to_handle_at"
    SYS_nfsservctl "nfsservctl"
    SYS_open_by_handle_at "open_by_handle_at"
    SYS_open_tree "open_tree"
    SYS_perf_event_open "perf_event_open"
    SYS_personality "personality"
    SYS_pidfd_getfd "pidfd_getfd"
    SYS_pivot_root "pivot_root"
    SYS_process_madvise "process_madvise"
    SYS_process_mrelease "process_mrelease"
    SYS_process_vm_readv "process_vm_readv"
    SYS_process_vm_writev "process_vm_writev"
    SYS_ptrace "ptrace"
    SYS_quotactl "quotactl"
    SYS_quotactl_fd "quotactl_fd"
    SYS_reboot "reboot"
    SYS_remap_file_pages "remap_file_pages"
    SYS_request_key "request_key"
    SYS_seccomp "seccomp"
    SYS_semctl "semctl"
    SYS_semget "semget"
    SYS_semop "semop"
    SYS_semtimedop "semtimedop"
    SYS_set_mempolicy_home_node "set_mempolicy_home_node"
    SYS_setdomainname "setdomainname"
    SYS_sethostname "sethostname"
    SYS_setns "setns"
    SYS_settimeofday "settimeofday"
    SYS_shmat "shmat"
    SYS_shmctl "shmctl"
    SYS_shmdt "shmdt"
    SYS_shmget "shmget"
    SYS_socket "socket"
    SYS_swapoff "swapoff"
    SYS_swapon "swapon"
    SYS_syslog "syslog"
    SYS_umount2 "umount2"
    SYS_unshare "unshare"
    SYS_userfaultfd "userfaultfd"
    SYS_vhangup "vhangup"
    SYS_vmsplice "vmsplice"
];

#[cfg(target_arch = "x86_64")]
const REFUSED_EARLIER: &[(libc::c_long, &str)] = calls![
    SYS__sysctl "_sysctl"
    SYS_ioperm "ioperm"
    SYS_iopl "iopl"
    SYS_modify_ldt "modify_ldt"
    SYS_sysfs "sysfs"
    SYS_uselib "uselib"
    SYS_ustat "ustat"
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_EARLIER: &[(libc::c_long, &str)] = &[];

/// The name of a call that is refused; nothing if programs have to think that the kernel does not have it.
pub(super) fn refused_name(number: i32) -> Option<&'static str> {
    let number = libc::c_long::from(number);
    let mut refused = REFUSED.iter().chain(REFUSED_EARLIER);
    refused.find(|(refused, _)| *refused == number).map(|(_, name)| *name)
}
