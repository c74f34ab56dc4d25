/* Lets calls that open, write, sync, rename, remove, make or cut files below one folder fail with an error of choice.
 *
 * Load it with LD_PRELOAD. DISK_ROOT names the folder, and DISK_PLAN a file that tests/faults/disk/faults.py writes while
 * the process runs: it says which calls fail on which files, with which error, and counts those that failed.
 */
#include "../preloaded/below.h"
#include <fnmatch.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

enum { OPEN = 1, WRITE = 2, SYNC = 4, RENAME = 8, REMOVE = 16, MAKE = 32, CUT = 64, READ = 128 };

/* As `_PLAN` in faults.py has it. */
struct plan {
    int64_t error;    /* the errno of a call that fails; 0 when none fails */
    int64_t calls;    /* the kinds above that fail */
    int64_t passes;   /* how many calls pass before the first one fails */
    int64_t failures; /* how many fail then; negative: all */
    int64_t room;     /* how many bytes are written before calls fail; the write that takes the last one is cut short */
    int64_t seen;     /* calls of those kinds on those files */
    int64_t failed;   /* calls that failed or were cut short */
    char pattern[256]; /* of fnmatch(3), for paths relative to the root */
    char last[256];    /* the path of the last call that failed */
};

static struct plan *plan;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("DISK_PLAN");
    if (!path || !look_below(getenv("DISK_ROOT"))) return;
    int file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (file < 0) abort();
    void *mapped = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) abort();
    syscall(SYS_close, file);
    plan = mapped;
}

static int planned(int call) {
    return plan && __atomic_load_n(&plan->error, __ATOMIC_SEQ_CST) && plan->calls & call;
}

static void count(const char *path) {
    __atomic_fetch_add(&plan->failed, 1, __ATOMIC_SEQ_CST);
    snprintf(plan->last, sizeof plan->last, "%s", path);
}

static int meant(const char *path) { return path && fnmatch(plan->pattern, path, FNM_EXTMATCH) == 0; }

/* Whether a call on a path below the root is to fail now; sets errno if so. */
static int fails(int call, const char *path) {
    if (!planned(call) || !meant(path)) return 0;
    int64_t error = plan->error, number = __atomic_fetch_add(&plan->seen, 1, __ATOMIC_SEQ_CST);
    if (!error || number < plan->passes) return 0;
    if (plan->failures >= 0 && number >= plan->passes + plan->failures) return 0;
    if (__atomic_load_n(&plan->room, __ATOMIC_SEQ_CST) > 0) return 0;
    count(path);
    errno = error;
    return 1;
}

static int file_fails(int call, int file) {
    char path[PATH_MAX];
    int kept = errno;
    const char *inside = planned(call) ? path_of(file, path) : NULL;
    errno = kept;
    return inside && fails(call, inside);
}

static int name_fails(int call, int folder, const char *name) {
    char path[PATH_MAX];
    int kept = errno;
    const char *inside = planned(call) ? absolute(folder, name, path) : NULL;
    errno = kept;
    return inside && fails(call, inside);
}

/* The part of a write for which there is room. */
static size_t roomy(int file, size_t length) {
    char path[PATH_MAX];
    if (!planned(WRITE) || __atomic_load_n(&plan->room, __ATOMIC_SEQ_CST) <= 0 || !meant(path_of(file, path))) return length;
    int64_t before = __atomic_fetch_sub(&plan->room, (int64_t)length, __ATOMIC_SEQ_CST);
    if (before >= (int64_t)length) return length;
    count(path_of(file, path));
    return before > 0 ? (size_t)before : 0;
}

static int opened(int folder, const char *name, int flags, mode_t mode) {
    int changes = (flags & (O_CREAT | O_TRUNC)) || (flags & O_ACCMODE) != O_RDONLY;
    int kept = errno, full = plan && plan->error == ENOSPC, existing = 0;
    if (planned(OPEN) && full) existing = !(flags & O_CREAT) || faccessat(folder, name, F_OK, 0) == 0;
    errno = kept;
    if (!existing && changes && name_fails(OPEN, folder, name)) return -1;
    if (!full && !changes && name_fails(READ, folder, name)) return -1;
    return syscall(SYS_openat, folder, name, flags, mode);
}

int open(const char *name, int flags, ...) { MODE(flags) return opened(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE(flags) return opened(AT_FDCWD, name, flags, mode); }
int openat(int folder, const char *name, int flags, ...) { MODE(flags) return opened(folder, name, flags, mode); }
int openat64(int folder, const char *name, int flags, ...) { MODE(flags) return opened(folder, name, flags, mode); }

ssize_t write(int file, const void *bytes, size_t length) {
    if (file_fails(WRITE, file)) return -1;
    return syscall(SYS_write, file, bytes, roomy(file, length));
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
    if (file_fails(WRITE, file)) return -1;
    return syscall(SYS_pwrite64, file, bytes, roomy(file, length), at);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) { return pwrite64(file, bytes, length, at); }

ssize_t writev(int file, const struct iovec *parts, int number) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    return file_fails(WRITE, file) ? -1 : real(file, parts, number);
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t length) {
    return file_fails(WRITE, to) ? -1 : syscall(SYS_sendfile, to, from, at, length);
}

ssize_t sendfile(int to, int from, off_t *at, size_t length) { return sendfile64(to, from, at, length); }

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *into, size_t length, unsigned flags) {
    return file_fails(WRITE, to) ? -1 : syscall(SYS_copy_file_range, from, at, to, into, length, flags);
}

int fsync(int file) { return file_fails(SYNC, file) ? -1 : syscall(SYS_fsync, file); }
int fdatasync(int file) { return file_fails(SYNC, file) ? -1 : syscall(SYS_fdatasync, file); }

int ftruncate64(int file, off64_t size) { return file_fails(CUT, file) ? -1 : syscall(SYS_ftruncate, file, size); }
int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    return name_fails(RENAME, to, new) ? -1 : syscall(SYS_renameat2, from, old, to, new, flags);
}

int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    return name_fails(MAKE, to, new) ? -1 : syscall(SYS_linkat, from, old, to, new, flags);
}

int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int unlinkat(int folder, const char *name, int flags) {
    return name_fails(REMOVE, folder, name) ? -1 : syscall(SYS_unlinkat, folder, name, flags);
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int folder, const char *name, mode_t mode) {
    return name_fails(MAKE, folder, name) ? -1 : syscall(SYS_mkdirat, folder, name, mode);
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }
