/* Records every change that a process makes below one folder, in order, for tests of power loss.
 *
 * Load it with LD_PRELOAD. POWER_ROOT names the folder and POWER_LOG the file that the events are appended to;
 * tests/faults/power/disk.py reads them. A change and its event happen under one lock, so the order of the events is
 * the order of the changes. The lock is the mutex among the threads, and a lock of the log file among the processes:
 * a process that holds the latter can kill this one between two changes, never between a change and its event. Files
 * that are mapped to memory are not seen.
 */
#include "../preloaded/below.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -1;

/* Takes (F_WRLCK) or gives back (F_UNLCK) the log among the processes. */
static void lock_log(short type) {
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    if (log_file < 0) return;
    while (syscall(SYS_fcntl, log_file, F_SETLKW, &whole) != 0)
        if (errno != EINTR) abort();
}

static void hold(void) {
    pthread_mutex_lock(&lock);
    lock_log(F_WRLCK);
}

static void let_go(void) {
    lock_log(F_UNLCK);
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("POWER_ROOT"), *log = getenv("POWER_LOG");
    if (!log || !look_below(folder)) return;
    log_file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    pthread_atfork(hold, let_go, let_go);
}

/* Whether an open file lies below the root, or is the root. */
static int ours(int file, struct stat *found) {
    char path[PATH_MAX];
    return path_of(file, path) && syscall(SYS_newfstatat, file, "", found, AT_EMPTY_PATH) == 0;
}

static void tell(char kind, uint64_t inode, int64_t offset, const void *first, size_t one, const void *second, size_t two) {
    char head[25];
    uint32_t lengths[2] = {one, two};
    head[0] = kind;
    memcpy(head + 1, &inode, 8);
    memcpy(head + 9, &offset, 8);
    memcpy(head + 17, lengths, 8);
    struct iovec parts[3] = {{head, sizeof head}, {(void *)first, one}, {(void *)second, two}};
    if (syscall(SYS_writev, log_file, parts, 3) != (long)(sizeof head + one + two)) abort();
}

static void named(char kind, uint64_t inode, const char *first, const char *second) {
    tell(kind, inode, 0, first, strlen(first), second, second ? strlen(second) : 0);
}

static int opened(int folder, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    const char *inside = NULL;
    int kept = errno, changes = (flags & (O_CREAT | O_TRUNC)) && (flags & O_TMPFILE) != O_TMPFILE;
    if (changes) inside = absolute(folder, name, path);
    errno = kept;
    if (!inside) return syscall(SYS_openat, folder, name, flags, mode);
    hold();
    int existed = faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    int file = syscall(SYS_openat, folder, name, flags, mode);
    kept = errno;
    struct stat found;
    if (file >= 0 && syscall(SYS_newfstatat, file, "", &found, AT_EMPTY_PATH) == 0) {
        if (!existed) named('C', found.st_ino, inside, NULL);
        else if (flags & O_TRUNC) tell('T', found.st_ino, 0, NULL, 0, NULL, 0);
    }
    let_go();
    errno = kept;
    return file;
}

int open(const char *name, int flags, ...) { MODE(flags) return opened(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE(flags) return opened(AT_FDCWD, name, flags, mode); }
int openat(int folder, const char *name, int flags, ...) { MODE(flags) return opened(folder, name, flags, mode); }
int openat64(int folder, const char *name, int flags, ...) { MODE(flags) return opened(folder, name, flags, mode); }

static ssize_t written(int file, const void *bytes, size_t length, off_t at, int positioned) {
    struct stat found;
    int kept = errno, recorded = ours(file, &found);
    errno = kept;
    if (!recorded || !S_ISREG(found.st_mode))
        return positioned ? syscall(SYS_pwrite64, file, bytes, length, at) : syscall(SYS_write, file, bytes, length);
    hold();
    ssize_t done = positioned ? syscall(SYS_pwrite64, file, bytes, length, at) : syscall(SYS_write, file, bytes, length);
    kept = errno;
    if (done > 0) {
        if (!positioned) at = lseek(file, 0, SEEK_CUR) - done;
        tell('W', found.st_ino, at, NULL, 0, bytes, done);
    }
    let_go();
    errno = kept;
    return done;
}

ssize_t write(int file, const void *bytes, size_t length) { return written(file, bytes, length, 0, 0); }
ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) { return written(file, bytes, length, at, 1); }
ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) { return written(file, bytes, length, at, 1); }

ssize_t writev(int file, const struct iovec *parts, int count) {
    struct stat found;
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    int kept = errno, recorded = ours(file, &found);
    errno = kept;
    if (!recorded || !S_ISREG(found.st_mode)) return real(file, parts, count);
    ssize_t sum = 0;
    for (int part = 0; part < count; part++) {
        ssize_t done = written(file, parts[part].iov_base, parts[part].iov_len, 0, 0);
        if (done < 0) return sum ? sum : done;
        sum += done;
        if ((size_t)done < parts[part].iov_len) break;
    }
    return sum;
}

static int cut(int file, off_t size) {
    struct stat found;
    hold();
    int done = syscall(SYS_ftruncate, file, size), kept = errno;
    if (done == 0 && ours(file, &found)) tell('T', found.st_ino, size, NULL, 0, NULL, 0);
    let_go();
    errno = kept;
    return done;
}

int ftruncate(int file, off_t size) { return cut(file, size); }
int ftruncate64(int file, off64_t size) { return cut(file, size); }

static int synced(int file, long call) {
    struct stat found;
    hold();
    int done = syscall(call, file), kept = errno;
    if (done == 0 && ours(file, &found)) tell('S', found.st_ino, 0, NULL, 0, NULL, 0);
    let_go();
    errno = kept;
    return done;
}

int fsync(int file) { return synced(file, SYS_fsync); }
int fdatasync(int file) { return synced(file, SYS_fdatasync); }

void sync(void) {
    hold();
    syscall(SYS_sync);
    if (log_file >= 0) tell('A', 0, 0, NULL, 0, NULL, 0);
    let_go();
}

static int moved(char kind, int from, const char *old, int to, const char *new, int flags) {
    char first[PATH_MAX], second[PATH_MAX];
    const char *one = absolute(from, old, first), *two = absolute(to, new, second);
    struct stat found;
    hold();
    int done = kind == 'L' ? syscall(SYS_linkat, from, old, to, new, flags) : syscall(SYS_renameat2, from, old, to, new, flags);
    int kept = errno;
    if (done == 0 && (one || two)) {
        uint64_t inode = syscall(SYS_newfstatat, to, new, &found, AT_SYMLINK_NOFOLLOW) == 0 ? found.st_ino : 0;
        named(kind, inode, one ? one : "", two ? two : "");
    }
    let_go();
    errno = kept;
    return done;
}

int rename(const char *old, const char *new) { return moved('R', AT_FDCWD, old, AT_FDCWD, new, 0); }
int renameat(int from, const char *old, int to, const char *new) { return moved('R', from, old, to, new, 0); }
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) { return moved('R', from, old, to, new, flags); }
int link(const char *old, const char *new) { return moved('L', AT_FDCWD, old, AT_FDCWD, new, 0); }
int linkat(int from, const char *old, int to, const char *new, int flags) { return moved('L', from, old, to, new, flags); }

static int removed(int folder, const char *name, int flags) {
    char path[PATH_MAX];
    const char *inside = absolute(folder, name, path);
    hold();
    int done = syscall(SYS_unlinkat, folder, name, flags), kept = errno;
    if (done == 0 && inside) named('U', 0, inside, NULL);
    let_go();
    errno = kept;
    return done;
}

int unlink(const char *name) { return removed(AT_FDCWD, name, 0); }
int unlinkat(int folder, const char *name, int flags) { return removed(folder, name, flags); }
int rmdir(const char *name) { return removed(AT_FDCWD, name, AT_REMOVEDIR); }

static int made(int folder, const char *name, mode_t mode) {
    char path[PATH_MAX];
    struct stat found;
    const char *inside = absolute(folder, name, path);
    hold();
    int done = syscall(SYS_mkdirat, folder, name, mode), kept = errno;
    if (done == 0 && inside && syscall(SYS_newfstatat, folder, name, &found, 0) == 0) named('M', found.st_ino, inside, NULL);
    let_go();
    errno = kept;
    return done;
}

int mkdir(const char *name, mode_t mode) { return made(AT_FDCWD, name, mode); }
int mkdirat(int folder, const char *name, mode_t mode) { return made(folder, name, mode); }
