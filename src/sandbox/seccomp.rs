//! System calls that no honest candidate needs and that reach out of the sandbox or into another process.
//!
//! Source: seccomp(2), and the notes of each call in its manual page on what it lets a process do.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// New in Linux 6.13, with one number on all architectures.
const SYS_SETXATTRAT: i64 = 463;

/// The flags of a file, which are notes too; see ioctl_fs(2).
const FS_IOC_SETFLAGS: u64 = 0x4008_6602;

/// Refused with EPERM whatever the arguments are.
const REFUSED: [i64; 70] = [
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // keys, kernel programs, kernel memory, tracing
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_syslog,
    libc::SYS_lookup_dcookie,
    libc::SYS_fanotify_init,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // namespaces and mounts
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // the machine
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_personality,
    // notes on a directory that outlive what is in it
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SYS_SETXATTRAT,
    // memory and messages that outlive a process
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_mq_open,
    libc::SYS_memfd_secret,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_ioprio_set,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: [i64; 5] =
    [libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_kexec_file_load, libc::SYS_uselib, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: [i64; 0] = [];

/// Calls whose first argument names a process; they may name only the caller, by 0.
const OWN_PROCESS_ONLY: [i64; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];

/// Flags of clone(2) that make namespaces.
const NAMESPACES: [u64; 7] =
    [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];

/// What a filter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// For all that runs in a network namespace of its own.
    WithNetworkNamespace,
    /// For what shares the host's network: no internet sockets either.
    WithHostNetwork,
}

/// The filters of a worker, to be installed in this order.
pub(super) fn filters(place: Place) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.into_iter().chain(REFUSED_HERE).map(|call| (call, Vec::new())).collect();
    for call in OWN_PROCESS_ONLY {
        refused.insert(call, vec![rule(&[(0, SeccompCmpOp::Ne, 0)])?]);
    }
    refused.insert(libc::SYS_setpriority, vec![rule(&[(1, SeccompCmpOp::Ne, 0)])?]);
    let new_namespaces = NAMESPACES
        .iter()
        .map(|flag| rule(&[(0, SeccompCmpOp::MaskedEq(*flag), *flag)]))
        .collect::<Result<Vec<_>, _>>()?;
    refused.insert(libc::SYS_clone, new_namespaces);
    // Families that pass a network namespace by (vsock, alg, packet, …); a family is an int.
    let families: &[i32] = match place {
        Place::WithNetworkNamespace => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        Place::WithHostNetwork => &[libc::AF_UNIX],
    };
    let others: Vec<_> =
        families.iter().map(|family| (0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()))).collect();
    refused.insert(libc::SYS_socket, vec![rule(&others)?]);
    // Typing into the terminal that started us.
    let typing = rule(&[(1, SeccompCmpOp::Eq, u64::from(libc::TIOCSTI as u32))])?;
    refused.insert(libc::SYS_ioctl, vec![typing, rule(&[(1, SeccompCmpOp::Eq, FS_IOC_SETFLAGS)])?]);
    let errors = [(refused, libc::EPERM), (BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)];
    errors.into_iter().map(|(rules, errno)| program(rules, errno)).collect()
}

/// The filter that keeps every descendant in its process group, where there is no process namespace to end them
/// by, and its signals away from some processes.
pub(super) fn group_filter(spared: &[i32]) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut refused = BTreeMap::from([(libc::SYS_setsid, Vec::new()), (libc::SYS_setpgid, Vec::new())]);
    // -1 means all processes of the user.
    let targets = spared
        .iter()
        .flat_map(|pid| [*pid, -*pid])
        .chain([-1])
        .map(|target: i32| rule(&[(0, SeccompCmpOp::Eq, u64::from(target.cast_unsigned()))]))
        .collect::<Result<Vec<_>, _>>()?;
    for call in
        [libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill, libc::SYS_rt_sigqueueinfo, libc::SYS_pidfd_open]
    {
        refused.insert(call, targets.clone());
    }
    program(refused, libc::EPERM)
}

/// A filter as the bytes that prctl(2) takes, in hexadecimal.
pub(super) fn to_hex(filter: &BpfProgram) -> String {
    let bytes = filter.iter().flat_map(|step| {
        let [a, b] = step.code.to_ne_bytes();
        let [c, d, e, f] = step.k.to_ne_bytes();
        [a, b, step.jt, step.jf, c, d, e, f]
    });
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// All conditions of one rule hold together; arguments are compared as 32 bits.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions
        .iter()
        .map(|(index, operator, value)| {
            SeccompCondition::new(*index, SeccompCmpArgLen::Dword, operator.clone(), *value)
        })
        .collect::<Result<Vec<_>, _>>()?;
    SeccompRule::new(conditions)
}

fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: i32,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno.unsigned_abs()), arch)?
        .try_into()
}
